import type { Permission, Role } from '../permissions/catalog.ts';
import type { OutcomeCounts } from '../usage/outcomes.ts';
import type { Rotation } from './rotation.ts';

/** How much a key was used. Times are milliseconds since 1970. */
export interface UsageTotals {
  /** How often it was accepted. */
  uses: number;
  /** When it was last accepted; null if never. */
  lastUsedAt: number | null;
  /** When the previous secret was last used. */
  previousLastUsedAt: number | null;
}

/** What a key has used: a permission, or a role that it has granted, as `role:VIEWER`. */
export type UsedGrant = Permission | `role:${Role}`;

/** What to add to the recorded usage of a key. */
export interface KeyUsage extends UsageTotals {
  /** The id of the key. */
  id: string;
  /** The permissions that it used, and the roles that it granted, each once. */
  permissions: readonly UsedGrant[];
  /** How its requests ended, by the hours in which they came. */
  hours: readonly HourUsage[];
}

/**
 * What to add to how the requests of an hour ended. One that was counted as accepted before, and ended otherwise, is
 * one accepted less.
 */
export interface HourUsage extends OutcomeCounts {
  /** When it began, in milliseconds since 1970. */
  start: number;
}

/** When the previous secret was last used since a rotation; null if it was not. */
export function previousUseSince(
  { startedAt }: Rotation | Omit<Rotation, 'grace'>,
  { previousLastUsedAt }: UsageTotals,
): number | null {
  return previousLastUsedAt !== null && previousLastUsedAt >= startedAt ? previousLastUsedAt : null;
}

/** The usage of a key that was never used. */
export const NO_USAGE: UsageTotals = { uses: 0, lastUsedAt: null, previousLastUsedAt: null };
