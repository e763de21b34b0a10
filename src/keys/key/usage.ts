import type { Permission } from '../permissions/catalog.ts';
import type { Rotation } from './rotation.ts';

/** How much a key was used. Times are milliseconds since 1970. */
export interface UsageTotals {
  uses: number;
  lastUsedAt: number | null;
  /** When the previous secret was last used. */
  previousLastUsedAt: number | null;
}

/** What to add to the recorded usage of a key. */
export interface KeyUsage extends UsageTotals {
  id: string;
  /** The grants that it has used. */
  grants: ReadonlySet<Permission>;
}

/** When the previous secret was last used since a rotation; null if it was not. */
export function previousUseSince({ startedAt }: Rotation, { previousLastUsedAt }: UsageTotals): number | null {
  return previousLastUsedAt !== null && previousLastUsedAt >= startedAt ? previousLastUsedAt : null;
}

/** The usage of a key that was never used. */
export const NO_USAGE: UsageTotals = { uses: 0, lastUsedAt: null, previousLastUsedAt: null };
