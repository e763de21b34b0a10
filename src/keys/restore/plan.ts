import type { AuditActor, AuditEntry, AuditReader } from '../audit/audit-entry.ts';
import { findDifferences } from '../audit/compare.ts';
import { KeysError } from '../errors.ts';
import type { ApiKey } from '../key/api-key.ts';
import { normalizeName } from '../key/name.ts';
import { type Status, statusOf } from '../key/status.ts';
import { MAX_PAGE_SIZE } from '../page.ts';
import type { ProgressReport } from '../progress.ts';
import type { KeyFinder, KeyRepository } from '../repository.ts';
import { prefixOf } from '../secret/secret.ts';
import { printable } from '../text.ts';
import { isChange, type KeptAspect, type RestoreContext, restoredKey } from './restored-key.ts';

/** Which of the revoked keys a restore brings back: those of these names or ids in the backup, or all. */
export type BringBack = readonly string[] | 'all';

/** A key that a restore names. */
export interface NamedKey {
  id: string;
  name: string;
  /** Of the secret that the backup has or, of a key that it lacks, of the present one. */
  prefix: string;
}

/** When a key changed, and who did it; null where the audit log no longer has it. */
export type Since = { at: number; actor: AuditActor } | null;

/** A key that the backup has, and that was deleted since. */
export interface DeletedKey extends NamedKey {
  /** What its status would be. */
  status: Status;
  since: Since;
}

/** A key that stays as it is now in some of its fields, since the backup would give it more. */
export interface KeptKey extends NamedKey {
  kept: KeptAspect[];
  since: Since;
}

/** A key that somebody may have changed in the backup. */
export interface AlteredKey extends NamedKey {
  /** What is wrong. */
  reason: string;
}

/** What a restore does. */
export interface RestorePlan {
  /** The number of the newest entry of the store's audit log when it was looked at. */
  head: number;
  /** How many keys the backup has. */
  keys: number;
  /** Keys that were deleted since the backup, and stay deleted. */
  deleted: DeletedKey[];
  /** Keys that were disabled, rotated or narrowed since, and stay so. */
  kept: KeptKey[];
  /** Keys that come back as the backup has them, although they were revoked since. */
  broughtBack: NamedKey[];
  /** Keys that were created since, and are deleted. */
  created: NamedKey[];
  /** The ids of all other keys that change. */
  changed: string[];
  /** Keys that are damaged in the backup: nothing is done about them. */
  damaged: NamedKey[];
  /** Keys that would get more than they have now, and are not as the audit log of the backup says. */
  altered: AlteredKey[];
  /** The first entry of the audit log that differs between backup and store; null if there is none. */
  logDiffersFrom: number | null;
}

/** What of a store a plan is made of. */
type Source = Pick<KeyRepository, 'list' | 'findBy' | 'auditLog'>;

/** What a plan is made of. */
export interface RestoreSources extends RestoreContext {
  backup: Source;
  present: Source;
  onProgress?: ProgressReport | undefined;
}

/**
 * What a restore would do: nothing that was revoked since the backup works again unless it is to be brought back.
 * @returns undefined if the backup is one of another store
 * @throws KeysError NOT_FOUND, INPUT_INVALID for keys that cannot be brought back; STORE_…
 */
export async function planRestore(
  bringBack: BringBack,
  { backup, present, onProgress, ...context }: RestoreSources,
): Promise<RestorePlan | undefined> {
  const differs = await findDivergence(backup.auditLog, present.auditLog);
  if (differs === 'from the start') return undefined;
  const head = (await present.auditLog.head())?.number ?? 0;
  const lists = { deleted: [], kept: [], broughtBack: [], created: [], changed: [], damaged: [], altered: [] };
  const plan: RestorePlan = { head, keys: 0, ...lists, logDiffersFrom: differs ?? null };
  const wanted = new Set(bringBack === 'all' ? [] : bringBack.map(normalizeName));
  const missing = new Set(wanted);
  const returning: ApiKey[] = [];
  const stay = new Map<string, ApiKey>();
  for await (const { keys, others } of pairsOf(backup, present)) {
    for (const key of keys) {
      const now = others.get(key.id);
      // No id is a name: it has hyphens.
      const names = [key.id, key.name];
      for (const name of names) missing.delete(name);
      const isWanted = bringBack === 'all' || names.some((name) => wanted.has(name));
      if (addKey(plan, key, now, { ...context, isWanted }) && !now) returning.push(key);
      if (key.damaged && now) stay.set(now.name, now);
    }
    plan.keys += keys.length;
    await onProgress?.(plan.keys);
  }
  if (missing.size > 0) {
    const names = [...missing].map((name) => `"${printable(name)}"`).join(', ');
    throw new KeysError('NOT_FOUND', `The backup has no API key with the name or id ${names}. Nothing was changed.`);
  }
  await requireCreators(returning, present);
  await requireFreeNames(stay, returning, { backup, present });
  for await (const { keys, others } of pairsOf(present, backup))
    plan.created.push(...keys.filter(({ id }) => !others.has(id)).map(namedKey));
  for (const key of plan.deleted) key.since = await findSince(present.auditLog, key.id, 'deleted');
  for (const key of plan.kept) key.since = await findSince(present.auditLog, key.id, key.kept);
  // What is only narrowed, cannot get more by what somebody has written into the backup.
  const widened = [...plan.broughtBack, ...plan.kept.filter(({ kept }) => kept.includes('damaged'))];
  const altered = await findByIds(backup, widened);
  const reasons = await findDifferences(backup.auditLog, altered);
  for (const key of altered) {
    const reason = reasons.get(key.id);
    if (reason !== undefined) plan.altered.push({ ...namedKey(key), reason });
  }
  return plan;
}

/** Adds a key of the backup to a plan. @returns whether it is brought back */
function addKey(
  plan: RestorePlan,
  key: ApiKey,
  present: ApiKey | undefined,
  { isWanted, ...context }: RestoreContext & { isWanted: boolean },
): boolean {
  const named = namedKey(key);
  if (key.damaged) {
    plan.damaged.push(named);
    return false;
  }
  if (present && !isChange(key, present)) return false;
  const restored = present && restoredKey(key, present, context);
  if (isWanted && (!restored || restored.kept.length > 0)) {
    plan.broughtBack.push(named);
    return true;
  }
  if (!restored) plan.deleted.push({ ...named, status: statusOf(key, context.now), since: null });
  else if (restored.kept.length > 0) plan.kept.push({ ...named, kept: restored.kept, since: null });
  else if (isChange(present, restored.key)) plan.changed.push(key.id);
  return false;
}

/** Requires that the creators of keys that come back are there or come back as well. @throws KeysError INPUT_INVALID */
async function requireCreators(returning: readonly ApiKey[], present: Pick<KeyFinder, 'findBy'>): Promise<void> {
  const creators = returning.flatMap(({ createdBy }) => (createdBy === null ? [] : [{ id: createdBy }]));
  const there = new Set([...returning, ...(await findByIds(present, creators))].map(({ id }) => id));
  const orphan = returning.find(({ createdBy }) => createdBy !== null && !there.has(createdBy));
  if (!orphan) return;
  throw new KeysError(
    'INPUT_INVALID',
    `"${orphan.name}" cannot be brought back alone: the key that created it was deleted as well. Bring that back, too.`,
  );
}

/**
 * Requires that no key is to get a name that another one keeps: one that is damaged in the backup stays as it is.
 * @param stay the names that such keys have now, each with its key
 * @throws KeysError INPUT_INVALID
 */
async function requireFreeNames(
  stay: ReadonlyMap<string, ApiKey>,
  returning: readonly ApiKey[],
  { backup, present }: Pick<RestoreSources, 'backup' | 'present'>,
): Promise<void> {
  const named = (stay.size > 0 ? await backup.findBy('name', [...stay.keys()]) : []).filter(({ damaged }) => !damaged);
  const there = new Set([...returning, ...(await findByIds(present, named))].map(({ id }) => id));
  const key = named.find(({ id }) => there.has(id));
  if (!key) return;
  const { publicId } = stay.get(key.name)!;
  throw new KeysError(
    'INPUT_INVALID',
    `"${printable(key.name)}" is the name of ${prefixOf(key.publicId)} in the backup, and now that of ` +
      `${prefixOf(publicId)}, which is damaged in the backup and stays as it is. Rename or delete that key first.`,
  );
}

/** All keys, page by page, with those of the same ids elsewhere. */
async function* pairsOf(
  from: Pick<KeyRepository, 'list'>,
  to: Pick<KeyFinder, 'findBy'>,
): AsyncGenerator<{ keys: ApiKey[]; others: Map<string, ApiKey> }> {
  for (let after: ApiKey | undefined; ;) {
    const keys = await from.list({ limit: MAX_PAGE_SIZE, after });
    if (keys.length === 0) return;
    yield { keys, others: new Map((await findByIds(to, keys)).map((key) => [key.id, key])) };
    after = keys.at(-1);
  }
}

async function findByIds(keys: Pick<KeyFinder, 'findBy'>, wanted: readonly { id: string }[]): Promise<ApiKey[]> {
  const ids = [...new Set(wanted.map(({ id }) => id))];
  return ids.length > 0 ? keys.findBy('id', ids) : [];
}

function namedKey({ id, name, publicId }: ApiKey): NamedKey {
  return { id, name, prefix: prefixOf(publicId) };
}

/** The fields of the audit log that tell of a loss. */
const FIELDS: Readonly<Record<KeptAspect, readonly string[]>> = {
  enabled: ['disabledAt'],
  secret: ['prefix', 'rotation'],
  grants: ['roles', 'permissions'],
  expiresAt: ['expiresAt'],
  limits: ['limits'],
  allowFrom: ['allowFrom'],
  damaged: [],
};

/** How many of a key's newest entries are looked at. */
const ENTRIES = 200;

/** When a key was deleted, or last lost what it lacks now, and by whom. @throws KeysError STORE_… */
async function findSince(
  log: Pick<AuditReader, 'find'>,
  id: string,
  lost: 'deleted' | readonly KeptAspect[],
): Promise<Since> {
  const entries = await log.find({ changesOf: [id], order: 'newest', limit: ENTRIES });
  const fields = lost === 'deleted' ? [] : lost.flatMap((aspect) => FIELDS[aspect]);
  const tells = ({ action, after }: AuditEntry) =>
    lost === 'deleted' ? action === 'DELETE' : fields.some((field) => Object.hasOwn(after ?? {}, field));
  const entry = entries.find(tells);
  return entry ? { at: entry.at, actor: entry.actor } : null;
}

type Log = Pick<AuditReader, 'find' | 'head'>;

/**
 * The first entry of the audit log of a backup that is another one in that of the store; undefined if there is none, or
 * nobody can tell, since one log is empty or was pruned beyond the other. Each has the hash of the one before it: once
 * they differ, they all do. So the keys of a backup cannot be changed with its log while the store still has the
 * entries of that time. Where the oldest entry that both have differs, the backup is one of another store.
 * @throws KeysError STORE_…
 */
async function findDivergence(backup: Log, present: Log): Promise<number | 'from the start' | undefined> {
  const logs = [backup, present];
  const nextEntry = async (log: Log, after: number) => (await log.find({ order: 'oldest', after, limit: 1 }))[0];
  /** Undefined where one of them has no entry with this number. */
  const isSame = async (number: number) => {
    const [one, other] = await Promise.all(logs.map((log) => nextEntry(log, number - 1)));
    return one?.number === number && other?.number === number ? one.hash === other.hash : undefined;
  };
  const oldest = await Promise.all(logs.map((log) => nextEntry(log, 0)));
  let same = Math.max(...oldest.map((entry) => entry?.number ?? Number.POSITIVE_INFINITY));
  if (!Number.isFinite(same)) return undefined;
  if ((await isSame(same)) === false) return 'from the start';
  const heads = await Promise.all(logs.map((log) => log.head()));
  let differs = Math.min(...heads.map((head) => head?.number ?? 0));
  if ((await isSame(differs)) !== false) return undefined;
  while (differs - same > 1) {
    const middle = Math.floor((same + differs) / 2);
    if (await isSame(middle)) same = middle;
    else differs = middle;
  }
  return differs;
}
