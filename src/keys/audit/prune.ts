import { EFFECTS } from '../effect.ts';
import type { WritePorts } from '../port.ts';
import type { AuditPosition, AuditReader, AuditWriter } from './audit-entry.ts';

/** Entries that are deleted, from the start of the log. */
export interface PrunedEntries {
  /** How many. */
  entries: number;
  /** The last of them. */
  last: AuditPosition;
}

/** The entries that were written before a time, in milliseconds since 1970; undefined if there are none. */
export async function findPrunable(log: AuditReader, before: number): Promise<PrunedEntries | undefined> {
  const last = await log.lastBefore(before);
  if (!last) return undefined;
  const start = await log.start();
  return { entries: last.number - (start?.number ?? 0), last };
}

/**
 * Deletes the entries that were written before a time, and records that; undefined if there are none. Secrets that keys
 * lost before it are forgotten with them, and so is what was done before it to keys that are gone.
 */
export async function pruneAuditLog(
  writer: AuditWriter & WritePorts,
  before: number,
  { now, operator }: { now: number; operator: string },
): Promise<PrunedEntries | undefined> {
  const pruned = await findPrunable(writer.auditLog, before);
  if (!pruned) return undefined;
  const { entries, last } = pruned;
  await writer.pruneAuditLog(last);
  await writer.forgetRotatedSecrets(before);
  await writer.port(EFFECTS).forget(before);
  const actor = { kind: 'CLI', id: null, name: operator } as const;
  const after = { entries, number: last.number, hash: last.hash };
  await writer.appendToAuditLog([{ at: now, actor, action: 'PRUNE', apiKey: null, before: null, after }]);
  return pruned;
}
