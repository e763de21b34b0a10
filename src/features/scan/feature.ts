import type { Feature } from '../../feature.ts';

export const scan: Feature = { name: 'scan', needs: ['leaks'] };
