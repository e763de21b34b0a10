import type { Feature } from '../../feature.ts';

export const review: Feature = { name: 'review' };
