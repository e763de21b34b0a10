import type { Feature } from '../../feature.ts';

export const completion: Feature = { name: 'completion' };
