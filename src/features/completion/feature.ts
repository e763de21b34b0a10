import type { Feature } from '../../feature.ts';

/** Completion of commands, flags and names in shells. */
export const completion: Feature = { name: 'completion' };
