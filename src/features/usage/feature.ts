import type { Feature } from '../../feature.ts';

export const usage: Feature = { name: 'usage' };
