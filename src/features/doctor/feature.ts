import type { OwnFeature } from '../../feature.ts';

/** Checks of a store, its configuration and its environment. */
export const doctor: OwnFeature = { name: 'doctor' };
