import { isDeepStrictEqual } from 'node:util';
import {
  type AuditAction,
  type AuditActor,
  type AuditedChange,
  type AuditPosition,
  type AuditReader,
  findDifferences,
} from '../../keys/audit/index.ts';
import { KeysError, MAX_PAGE_SIZE, printable, type ProgressReport } from '../../keys/basics/index.ts';
import type { RestoreStep, Transaction } from '../../keys/changes/index.ts';
import {
  type ApiKey,
  mapFields,
  normalizeName,
  type Status,
  statusOf,
  type StoredKey,
  valuesOfMissing,
  wideningFields,
} from '../../keys/key/index.ts';
import type { KeyFinder, KeyRepository } from '../../keys/repository/index.ts';
import { prefixOf } from '../../keys/secret/index.ts';
import { broughtBackKey, isChange, type KeptAspect, type RestoreContext, restoredKey } from './restored-key.ts';

/** The revoked keys to bring back: those with these names or ids in the backup, or all. */
export type BringBack = readonly string[] | 'all';

/** A key that a restore names. */
export interface NamedKey {
  id: string;
  name: string;
  /** The prefix in the backup; for a key missing there, the current one. */
  prefix: string;
}

/** When a key changed, and by whom; null if the audit log no longer has it. */
export type Since = { at: number; actor: AuditActor } | null;

/** A key of the backup that was deleted since then. */
interface DeletedKey extends NamedKey {
  /** The status it would have. */
  status: Status;
  since: Since;
}

/** A key that keeps some of its present values, since the backup would give it more access. */
interface KeptKey extends NamedKey {
  kept: KeptAspect[];
  since: Since;
}

/** A key whose data in the backup was possibly tampered with. */
interface AlteredKey extends NamedKey {
  /** The difference from the backup's log, as a sentence without its subject. */
  reason: string;
}

/** The effects of a restore. */
export interface RestorePlan {
  /** The number of the newest audit entry when the plan was made. */
  head: number;
  /** The number of keys in the backup. */
  keys: number;
  /** Keys that were deleted since the backup, and stay deleted. */
  deleted: DeletedKey[];
  /** Keys that were disabled, rotated or narrowed since, and stay so. */
  kept: KeptKey[];
  /** Keys that come back as the backup has them, although they were revoked since. */
  broughtBack: NamedKey[];
  /** Keys created since then, which are deleted. */
  created: NamedKey[];
  /** The ids of all other keys that change. */
  changed: string[];
  /** Keys that are damaged in the backup, which are ignored. */
  damaged: NamedKey[];
  /** Keys that would get more access than they have now, although they differ from the backup's own audit log. */
  altered: AlteredKey[];
  /** The ids of fields of missing plugins whose values in the backup are not restored. */
  missingFields: Set<string>;
  /** The first entry of the audit log that differs between backup and store; null if there is none. */
  logDiffersFrom: number | null;
}

/** The parts of a store that a plan needs. */
type Source = Pick<KeyRepository, 'list' | 'findBy' | 'auditLog'>;

/** The inputs of a plan. */
interface RestoreSources extends RestoreContext {
  backup: Source;
  present: Source;
  onProgress?: ProgressReport | undefined;
}

/**
 * Plans a restore: keys that were revoked since the backup stay revoked, except those to bring back.
 * @returns undefined if the backup is of another store
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
  const plan: RestorePlan = { head, keys: 0, ...lists, missingFields: new Set(), logDiffersFrom: differs ?? null };
  const wanted = new Set(bringBack === 'all' ? [] : bringBack.map(normalizeName));
  const missing = new Set(wanted);
  const returning: ApiKey[] = [];
  const stay = new Map<string, ApiKey>();
  for await (const { keys, others } of pairsOf(backup, present)) {
    for (const key of keys) {
      const now = others.get(key.id);
      // An id never equals a name, since it has hyphens.
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
  // A key that is only narrowed cannot gain access from a manipulated backup.
  const widened = [...plan.broughtBack, ...plan.kept.filter(({ kept }) => kept.includes('damaged'))];
  const altered = await findByIds(backup, widened);
  const reasons = await findDifferences(backup.auditLog, altered);
  for (const key of altered) {
    const reason = reasons.get(key.id);
    if (reason !== undefined) plan.altered.push({ ...namedKey(key), reason });
  }
  return plan;
}

/** Adds a key of the backup to a plan. @returns true if it is brought back */
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
  if (present || isWanted)
    for (const [id, value] of Object.entries(valuesOfMissing(key.unknownFields)))
      if (!isDeepStrictEqual(value, present?.unknownFields?.[id])) plan.missingFields.add(id);
  if (isWanted && (!restored || restored.kept.length > 0)) {
    plan.broughtBack.push(named);
    return true;
  }
  if (!restored) plan.deleted.push({ ...named, status: statusOf(key, context.now), since: null });
  else if (restored.kept.length > 0) plan.kept.push({ ...named, kept: restored.kept, since: null });
  else if (isChange(present, restored.key)) plan.changed.push(key.id);
  return false;
}

/** Requires that the creators of returning keys exist or return as well. @throws KeysError INPUT_INVALID */
async function requireCreators(returning: readonly ApiKey[], present: Pick<KeyFinder, 'findBy'>): Promise<void> {
  const creators = returning.flatMap(({ createdBy }) => (createdBy === null ? [] : [{ id: createdBy }]));
  const there = new Set([...returning, ...(await findByIds(present, creators))].map(({ id }) => id));
  const orphan = returning.find(({ createdBy }) => createdBy !== null && !there.has(createdBy));
  if (!orphan) return;
  throw new KeysError(
    'INPUT_INVALID',
    `"${orphan.name}" cannot be brought back alone, because the key that created it was deleted as well. Bring that one back, too.`,
  );
}

/**
 * Requires that no key gets a name that another one keeps, such as a key that is ignored because its backup is damaged.
 * @param stay the present names of those keys
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

/** All keys, page by page, with the keys of the same ids elsewhere. */
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

/** The audit fields that show when a value was reduced. */
const FIELDS: Readonly<Record<KeptAspect, readonly string[]>> = {
  enabled: ['disabledAt'],
  secret: ['prefix', 'rotation'],
  grants: ['roles', 'permissions'],
  expiresAt: ['expiresAt'],
  ...mapFields(wideningFields, (_, name) => [name]),
  damaged: [],
};

/** How many of a key's newest entries are searched. */
const ENTRIES = 200;

/** When, and by whom, a key was deleted or last lost access that it had in the backup. @throws KeysError STORE_… */
async function findSince(
  log: Pick<AuditReader, 'findChanges'>,
  id: string,
  lost: 'deleted' | readonly KeptAspect[],
): Promise<Since> {
  const changes = await log.findChanges([id], { order: 'newest', limit: ENTRIES });
  const fields = lost === 'deleted' ? [] : lost.flatMap((aspect) => FIELDS[aspect]);
  const tells = ({ action, after }: AuditedChange) =>
    lost === 'deleted' ? action === 'DELETE' : fields.some((field) => Object.hasOwn(after ?? {}, field));
  const change = changes.find(tells);
  return change ? { at: change.at, actor: change.actor } : null;
}

type Log = Pick<AuditReader, 'find' | 'head'>;

/**
 * The number of the first entry that differs between the audit logs of a backup and the store; undefined if there is
 * none, or it cannot be known because one log is empty or was pruned beyond the other. Entries contain the hash of the
 * one before, so after the first difference all differ: the keys of a backup cannot be changed together with its log
 * while the store still has the entries of that time. If the oldest common entry differs, the backup is of another
 * store.
 * @throws KeysError STORE_…
 */
async function findDivergence(backup: Log, present: Log): Promise<number | 'from the start' | undefined> {
  const logs = [backup, present];
  const nextEntry = async (log: Log, after: number) => (await log.find({ order: 'oldest', after, limit: 1 }))[0];
  /** Undefined if one of them has no entry with this number. */
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

/** Actions that change no key. */
const HARMLESS: ReadonlySet<AuditAction> = new Set([
  'REFUSE',
  'PRUNE',
  'CONSENT_REQUEST',
  'CONSENT_DENY',
  'CONSENT_REPLAY',
  'REVIEW',
]);

/** The restored backup, for the audit log. */
interface RestoreSource {
  /** Its name. */
  backup: string;
  /** The newest entry of its audit log. */
  head: AuditPosition | undefined;
}

/** A restore, ready to be made. */
interface Restoration {
  plan: RestorePlan;
  /** The keys that the plan takes from the backup: see `takenIds`. */
  keys: readonly StoredKey[];
  /** The steps of listeners for keys that are brought back. */
  steps: readonly RestoreStep[];
  source: RestoreSource;
}

/** The ids of the keys that a plan takes from the backup. */
export function takenIds({ kept, broughtBack, changed }: RestorePlan): string[] {
  return [...[...kept, ...broughtBack].map(({ id }) => id), ...changed];
}

/**
 * Replaces the keys of a store by those of a backup, as planned. Everything else in the store stays, including the
 * audit log.
 * @throws KeysError RESTORE_OUTDATED if keys changed after the plan was made
 */
export async function restoreKeys(transaction: Transaction, { plan, keys, steps, source }: Restoration): Promise<void> {
  const { find, catalog, now } = transaction;
  await requireUnchanged(transaction, plan);
  noteRestore(transaction, source, plan);
  const created = plan.created.map(({ id }) => id);
  if (created.length > 0) await transaction.delete(await find.findWithDescendants(created));
  const ids = keys.map(({ id }) => id);
  const present = new Map((await find.findBy('id', ids)).map((key) => [key.id, key]));
  const broughtBack = new Set(plan.broughtBack.map(({ id }) => id));
  const changes = keys
    .map((key) => {
      const before = present.get(key.id);
      const isWhole = !before || broughtBack.has(key.id);
      const after = isWhole ? broughtBackKey(key, before) : restoredKey(key, before, { catalog, now }).key;
      return { before, after };
    })
    .filter(({ before, after }) => !before || isChange(before, after));
  await transaction.replace(creatorsFirst(changes), 'RESTORE');
  for (const step of steps) await step(transaction, changes);
}

/** Records in the audit log that a backup replaced a store, and the effect on its keys, if known. */
export function noteRestore(transaction: Transaction, { backup, head }: RestoreSource, plan?: RestorePlan): void {
  const counts = plan && {
    deleted: plan.deleted.length,
    kept: plan.kept.length,
    broughtBack: plan.broughtBack.length,
    created: plan.created.length,
  };
  const { number = null, hash = null } = head ?? {};
  transaction.note({ action: 'RESTORE', after: { backup, number, hash, compared: plan !== undefined, ...counts } });
}

/** Requires that the confirmed plan is still current. */
async function requireUnchanged({ auditLog }: Transaction, { head }: RestorePlan): Promise<void> {
  for (let after = head; ;) {
    const entries = await auditLog.find({ order: 'oldest', after, limit: MAX_PAGE_SIZE });
    if (entries.some(({ action }) => !HARMLESS.has(action)))
      throw new KeysError(
        'RESTORE_OUTDATED',
        'Keys were changed while the backup was compared with the store. Nothing was restored. Run it again.',
      );
    if (entries.length < MAX_PAGE_SIZE) return;
    after = entries.at(-1)!.number;
  }
}

/** Sorts keys so that each comes after the key that created it. */
function creatorsFirst<Change extends { after: StoredKey }>(changes: readonly Change[]): Change[] {
  const byId = new Map(changes.map((change) => [change.after.id, change]));
  const sorted = new Set<Change>();
  const add = (change: Change) => {
    const creator = byId.get(change.after.createdBy ?? '');
    if (creator && !sorted.has(creator)) add(creator);
    sorted.add(change);
  };
  for (const change of changes) add(change);
  return [...sorted];
}
