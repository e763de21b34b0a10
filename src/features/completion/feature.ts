import type { OwnFeature } from '../../feature.ts';

/** Completion of commands, flags and names in shells. */
export const completion: OwnFeature = { name: 'completion' };
