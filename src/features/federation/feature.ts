import type { Feature } from '../../feature.ts';

export const federation: Feature = { name: 'federation', needs: ['consent'] };
