import type { Feature } from '../../feature.ts';

export const notices: Feature = { name: 'notices' };
