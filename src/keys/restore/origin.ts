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
  const first = await oldestCommon(backup, present);
  return first !== undefined && (await isSame(first, backup, present)) === false;
}

/**
 * The first entry of the audit log of a backup that is another one in that of the store; undefined if there is none.
 * Each has the hash of the one before it: once they differ, they all do. So the keys of a backup cannot be changed with
 * its log while the store still has the entries of that time.
 * @throws KeysError STORE_…
 */
export async function findDivergence(backup: Log, present: Log): Promise<number | undefined> {
  const heads = await Promise.all([backup.head(), present.head()]);
  let same = await oldestCommon(backup, present);
  let differs = Math.min(...heads.map((head) => head?.number ?? 0));
  if (same === undefined || (await isSame(differs, backup, present)) !== false) return undefined;
  while (differs - same > 1) {
    const middle = Math.floor((same + differs) / 2);
    if (await isSame(middle, backup, present)) same = middle;
    else differs = middle;
  }
  return differs;
}

type Log = Pick<AuditReader, 'find' | 'head'>;

/** The number of the oldest entry that both may have. */
async function oldestCommon(...logs: Pick<AuditReader, 'find'>[]): Promise<number | undefined> {
  const oldest = await Promise.all(logs.map((log) => nextEntry(log, 0)));
  const first = Math.max(...oldest.map((entry) => entry?.number ?? Number.POSITIVE_INFINITY));
  return Number.isFinite(first) ? first : undefined;
}

/** Whether both logs have the same entry with a number; undefined if one of them has none. */
async function isSame(number: number, ...logs: Pick<AuditReader, 'find'>[]): Promise<boolean | undefined> {
  const [one, other] = await Promise.all(logs.map((log) => nextEntry(log, number - 1)));
  return one?.number === number && other?.number === number ? one.hash === other.hash : undefined;
}

async function nextEntry(log: Pick<AuditReader, 'find'>, after: number) {
  return (await log.find({ order: 'oldest', after, limit: 1 }))[0];
}
