import type { Feature } from '../../feature.ts';

export const apply: Feature = { name: 'apply' };
