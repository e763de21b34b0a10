import type { Feature } from '../../feature.ts';

/** Checks of a store, its configuration and its environment. */
export const doctor: Feature = { name: 'doctor' };
