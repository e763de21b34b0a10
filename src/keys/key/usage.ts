import type { Permission } from '../permissions/catalog.ts';

/** How much a key was used. Times are milliseconds since 1970. */
export interface UsageTotals {
  /** How often it was accepted. */
  uses: number;
  /** When it was last accepted; null if never. */
  lastUsedAt: number | null;
  /** When a previous secret was last used; null if never. */
  previousLastUsedAt: number | null;
}

/** What to add to the totals of a key. */
export interface KeyUsage extends UsageTotals {
  /** The id of the key. */
  id: string;
  /** The permissions that it used. */
  permissions: ReadonlySet<Permission>;
}

/** The totals of a key that was never used. */
export const NO_USAGE: UsageTotals = { uses: 0, lastUsedAt: null, previousLastUsedAt: null };
