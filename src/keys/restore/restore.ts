import type { AuditAction, AuditPosition } from '../audit/audit-entry.ts';
import type { Transaction } from '../changes/transaction.ts';
import { EFFECTS, type NewEffect } from '../effect.ts';
import { KeysError } from '../errors.ts';
import type { StoredKey } from '../key/api-key.ts';
import { MAX_PAGE_SIZE } from '../page.ts';
import { CONSENTS } from '../requests/consent-request.ts';
import { SESSIONS } from '../session.ts';
import type { RestorePlan } from './plan.ts';
import { broughtBackKey, isChange, restoredKey } from './restored-key.ts';

/** What changes no key. */
const HARMLESS: ReadonlySet<AuditAction> = new Set(['REFUSE', 'PRUNE', 'CONSENT_REQUEST', 'CONSENT_DENY']);

/** Which backup is restored, for the audit log. */
export interface RestoreSource {
  /** Its name. */
  backup: string;
  /** The newest entry of its audit log. */
  head: AuditPosition | undefined;
}

/** What is restored. */
export interface Restoration {
  plan: RestorePlan;
  /** Those of the backup that the plan takes: see `takenIds`. */
  keys: readonly StoredKey[];
  /** The ids of the applications that were given some of them, by the ids of the keys. */
  clients: ReadonlyMap<string, string>;
  /** What was done, as the backup has it, to keys that are brought back. */
  effects: readonly NewEffect[];
  source: RestoreSource;
}

/** The ids of the keys that a plan takes from the backup. */
export function takenIds({ kept, broughtBack, changed }: RestorePlan): string[] {
  return [...[...kept, ...broughtBack].map(({ id }) => id), ...changed];
}

/**
 * Makes the keys of a store those of a backup, as planned. Everything else of the store stays, the audit log among it.
 * @throws KeysError RESTORE_OUTDATED if keys were changed since the plan was made
 */
export async function restoreKeys(
  transaction: Transaction,
  { plan, keys, clients, effects, source }: Restoration,
): Promise<void> {
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
  for (const id of broughtBack) await transaction.port(SESSIONS).leaveNewest(id, 0);
  await transaction.port(EFFECTS).insert(effects);
  for (const { before, after } of changes) {
    const client = before ? undefined : clients.get(after.id);
    if (client !== undefined) await transaction.port(CONSENTS).rememberClient(after.id, client);
  }
}

/** Notes in the audit log that a backup was put in the place of a store, and what became of its keys, if known. */
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

/** A plan that somebody has agreed to must still be what is done. */
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
