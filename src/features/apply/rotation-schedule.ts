import { type Issue, readDuration } from '../../keys/basics/index.ts';
import { notADuration, readRotation } from '../../keys/key/index.ts';

/** How often a key's secret is replaced, as the user wrote it. */
export interface RotationSchedule {
  /** The age at which a secret is replaced: a duration such as `90d`. */
  every: string;
  /** How long the previous secret keeps working after the first use of the new one. Default: `24h`. */
  grace?: string;
}

/** Parses a schedule of rotations, in milliseconds. With issues, the values are meaningless. */
export function readSchedule({ every, grace }: RotationSchedule): { every: number; grace: number; issues: Issue[] } {
  const age = readDuration(every);
  const { grace: lasts, issues } = readRotation(grace === undefined ? {} : { grace }, 0);
  if (age === undefined)
    issues.unshift(notADuration(every, 'every', 'Write a number with s, m, h, d or w, such as 90d.'));
  return { every: age ?? 0, grace: lasts, issues };
}
