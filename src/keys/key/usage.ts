import type { Permission } from '../permissions/catalog.ts';

/** How much a key was used. Times are milliseconds since 1970. */
export interface UsageTotals {
  uses: number;
  lastUsedAt: number | null;
  /** When the secret from before a rotation was last used. */
  previousLastUsedAt: number | null;
}

/** What is to be added to what is known of a key's use. */
export interface KeyUsage extends UsageTotals {
  id: string;
  /** The grants that it has used. */
  grants: ReadonlySet<Permission>;
}

export const NO_USAGE: UsageTotals = { uses: 0, lastUsedAt: null, previousLastUsedAt: null };
