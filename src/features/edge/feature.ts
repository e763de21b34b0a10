import type { Feature } from '../../feature.ts';

export const edge: Feature = { name: 'edge', needs: ['guard'] };
