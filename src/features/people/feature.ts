import type { Feature } from '../../feature.ts';

export const people: Feature = { name: 'people' };
