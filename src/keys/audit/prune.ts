import type { AuditPosition } from './audit-entry.ts';
import type { AuditReader } from './audit-reader.ts';

/** Entries that are deleted, from the start of the log. */
export interface PrunedEntries {
  /** How many. */
  entries: number;
  /** The last of them. */
  last: AuditPosition;
}

/** The entries that were written before a time; undefined if there are none. Times are milliseconds since 1970. */
export async function findPrunable(log: AuditReader, before: number, now: number): Promise<PrunedEntries | undefined> {
  const last = await log.lastBefore(before, now);
  const start = (await log.start())?.number ?? 0;
  return last && last.number > start ? { entries: last.number - start, last } : undefined;
}
