import type { AuditPosition } from './audit-entry.ts';
import type { ReadPorts } from '../basics/index.ts';
import type { AuditReader } from './audit-reader.ts';

/** Keeps entries of the audit log that a feature has yet to read. */
export interface PruneListener {
  /** The last entry that the feature no longer needs; undefined if it needs none. Times are milliseconds since 1970. */
  readonly pruning?: (ports: ReadPorts, now: number) => Promise<number | undefined>;
}

/** The last entry of the audit log that no feature needs; infinity if none needs any. */
export async function lastUnneeded(
  listeners: readonly PruneListener[],
  ports: ReadPorts,
  now: number,
): Promise<number> {
  const needed = await Promise.all(listeners.map(async ({ pruning }) => pruning?.(ports, now)));
  return Math.min(...needed.filter((number) => number !== undefined));
}

/** Entries that are deleted, from the start of the log. */
export interface PrunedEntries {
  /** How many. */
  entries: number;
  /** The last of them. */
  last: AuditPosition;
}

/**
 * The entries that were written before a time, in milliseconds since 1970; undefined if there are none.
 * @param upTo the last one that nothing needs
 */
export async function findPrunable(log: AuditReader, before: number, upTo: number): Promise<PrunedEntries | undefined> {
  const last = await log.lastBefore(before, upTo);
  const start = (await log.start())?.number ?? 0;
  return last && last.number > start ? { entries: last.number - start, last } : undefined;
}
