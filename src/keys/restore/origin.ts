import type { AuditReader } from '../audit/audit-entry.ts';

/**
 * Whether a backup is known to be one of another store: the oldest entry that both audit logs have differs. Where they
 * have none in common, since one is empty or was pruned, nobody can tell.
 * @throws KeysError STORE_…
 */
export async function isOfOtherStore(
  backup: Pick<AuditReader, 'find'>,
  present: Pick<AuditReader, 'find'>,
): Promise<boolean> {
  const logs = [backup, present];
  const oldest = await Promise.all(logs.map((log) => nextEntry(log, 0)));
  const first = Math.max(...oldest.map((entry) => entry?.number ?? Number.POSITIVE_INFINITY));
  if (!Number.isFinite(first)) return false;
  const [one, other] = await Promise.all(logs.map((log) => nextEntry(log, first - 1)));
  return one?.number === first && other?.number === first && one.hash !== other.hash;
}

async function nextEntry(log: Pick<AuditReader, 'find'>, after: number) {
  return (await log.find({ order: 'oldest', after, limit: 1 }))[0];
}
