import type { AuditReader } from '../audit/audit-entry.ts';
import { findDifferences } from '../audit/compare.ts';
import type { ApiKey } from '../key/api-key.ts';
import { type Status, statusOf } from '../key/status.ts';
import { MAX_PAGE_SIZE } from '../page.ts';
import type { ProgressReport } from '../progress.ts';
import type { KeyRepository } from '../repository.ts';
import { prefixOf } from '../secret/secret.ts';
import { type BringBack, requireCreators, requireFreeNames, wantedBy } from './bring-back.ts';
import { findDivergence } from './origin.ts';
import { broughtBackKey, type Kept, type RestoreContext, restoredKey } from './restored-key.ts';
import { findSince, type Since } from './since.ts';

/** A key that a restore names. */
export interface NamedKey {
  id: string;
  name: string;
  /** Of the secret that the backup has or, of a key that it lacks, of the present one. */
  prefix: string;
}

/** A key that the backup has, and that was deleted since. */
export interface DeletedKey extends NamedKey {
  /** What its status would be. */
  status: Status;
  since: Since;
}

/** A key that stays as it is now in some of its fields, since the backup would give it more. */
export interface KeptKey extends NamedKey {
  kept: Kept[];
  since: Since;
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

/** A key that somebody may have changed in the backup. */
export interface AlteredKey extends NamedKey {
  /** What is wrong. */
  reason: string;
}

/** What a plan is made of. */
export interface RestoreSources extends RestoreContext {
  backup: Pick<KeyRepository, 'list' | 'findBy' | 'auditLog'>;
  present: Pick<KeyRepository, 'list' | 'findBy' | 'auditLog'>;
  onProgress?: ProgressReport | undefined;
}

/**
 * What a restore would do: nothing that was revoked since the backup works again unless it is to be brought back.
 * @throws KeysError NOT_FOUND, INPUT_INVALID for keys that cannot be brought back; STORE_…
 */
export async function planRestore(bringBack: BringBack, sources: RestoreSources): Promise<RestorePlan> {
  const { backup, present, onProgress } = sources;
  const head = (await present.auditLog.head())?.number ?? 0;
  const plan: RestorePlan = {
    head,
    keys: 0,
    deleted: [],
    kept: [],
    broughtBack: [],
    created: [],
    changed: [],
    damaged: [],
    altered: [],
    logDiffersFrom: (await findDivergence(backup.auditLog, present.auditLog)) ?? null,
  };
  const wanted = wantedBy(bringBack);
  const returning: ApiKey[] = [];
  const stay = new Map<string, ApiKey>();
  for await (const { keys, others } of pairsOf(backup, present)) {
    for (const key of keys) {
      const now = others.get(key.id);
      if (addKey(plan, key, now, { ...sources, isWanted: wanted.take(key) }) && !now) returning.push(key);
      if (key.damaged && now) stay.set(now.name, now);
    }
    plan.keys += keys.length;
    await onProgress?.(plan.keys);
  }
  wanted.requireAllTaken();
  await requireCreators(returning, present);
  await requireFreeNames(stay, backup, async (named) => {
    const there = new Set((await findByIds(present, named)).map(({ id }) => id));
    return named.filter(({ id }) => there.has(id) || returning.some((key) => key.id === id));
  });
  for await (const { keys, others } of pairsOf(present, backup))
    plan.created.push(...keys.filter(({ id }) => !others.has(id)).map(namedKey));
  await addSince(plan, present.auditLog);
  await addAltered(plan, backup);
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

/** What a key becomes by a plan: as the backup has it, or within what it has now. */
export function resultOf<Key extends ApiKey>(
  backup: Key,
  present: Key | undefined,
  { isBroughtBack, ...context }: RestoreContext & { isBroughtBack: boolean },
): Key {
  if (isBroughtBack || !present) return broughtBackKey(backup, present);
  return restoredKey(backup, present, context).key;
}

/** Whether two states of a key differ. */
export function isChange(before: ApiKey, after: ApiKey): boolean {
  const fields = new Set([...Object.keys(before), ...Object.keys(after)]) as Set<keyof ApiKey>;
  return [...fields].some(
    (field) => before[field] !== after[field] && JSON.stringify(before[field]) !== JSON.stringify(after[field]),
  );
}

/** All keys, page by page, with those of the same ids elsewhere. */
async function* pairsOf(
  from: Pick<KeyRepository, 'list'>,
  to: Pick<KeyRepository, 'findBy'>,
): AsyncGenerator<{ keys: ApiKey[]; others: Map<string, ApiKey> }> {
  for (let after: ApiKey | undefined; ;) {
    const keys = await from.list({ limit: MAX_PAGE_SIZE, after });
    if (keys.length === 0) return;
    const others = await to.findBy(
      'id',
      keys.map(({ id }) => id),
    );
    yield { keys, others: new Map(others.map((key) => [key.id, key])) };
    after = keys.at(-1);
  }
}

/** What is only narrowed, cannot get more by what somebody has written into the backup. */
async function addAltered(plan: RestorePlan, backup: RestoreSources['backup']): Promise<void> {
  const widened = [...plan.broughtBack, ...plan.kept.filter(({ kept }) => kept.includes('damaged'))];
  const keys = await findByIds(backup, widened);
  const reasons = await findDifferences(backup.auditLog, keys);
  for (const key of keys) {
    const reason = reasons.get(key.id);
    if (reason !== undefined) plan.altered.push({ ...namedKey(key), reason });
  }
}

async function findByIds(keys: Pick<KeyRepository, 'findBy'>, wanted: readonly { id: string }[]): Promise<ApiKey[]> {
  if (wanted.length === 0) return [];
  return keys.findBy(
    'id',
    wanted.map(({ id }) => id),
  );
}

async function addSince(plan: RestorePlan, log: AuditReader): Promise<void> {
  for (const key of plan.deleted) key.since = await findSince(log, key.id, 'deleted');
  for (const key of plan.kept) key.since = await findSince(log, key.id, key.kept);
}

function namedKey({ id, name, publicId }: ApiKey): NamedKey {
  return { id, name, prefix: prefixOf(publicId) };
}
