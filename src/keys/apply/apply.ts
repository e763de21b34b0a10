import { type ApiKey, type StoredKey, withoutDigests } from '../key/api-key.ts';
import { auditChange } from '../audit/audit-entry.ts';
import type { DeclaredKey } from './declaration.ts';
import { type Plan, planChanges } from './plan.ts';
import { OPERATOR } from '../authorization/principal.ts';
import type { Secret } from '../secret/secret.ts';
import type { Transaction } from '../changes/transaction.ts';

/** A new key with its secret: the only time it is known. */
export interface NewSecret {
  secret: string;
  key: ApiKey;
}

export interface ApplyOptions {
  /** Delete keys that an apply made and that are declared no longer. */
  prune?: boolean;
  /**
   * Puts the secrets of new keys in safety before anything is written. When it throws, which must be a `KeysError`,
   * nothing is changed. It must not wait for anything: others can't write meanwhile.
   */
  deliver?: ((secrets: readonly NewSecret[]) => void) | undefined;
}

/** What an apply has done, inside the rules. */
export interface AppliedChanges {
  plan: Plan<StoredKey>;
  created: { secret: Secret; key: StoredKey }[];
}

/** What an apply has done. */
export interface AppliedKeys {
  plan: Plan;
  /** The new keys, in the order in which they are declared. */
  created: NewSecret[];
  /** Takes it all back. */
  undo: () => Promise<void>;
}

/** The same, without what secrets are recognised by. */
export function appliedKeysOf({ plan, created }: AppliedChanges, undo: () => Promise<void>): AppliedKeys {
  const updates = plan.updates.map(({ before, after }) => ({
    before: withoutDigests(before),
    after: withoutDigests(after),
  }));
  return {
    plan: { ...plan, updates, deletes: plan.deletes.map(withoutDigests) },
    created: created.map(({ secret, key }) => ({ secret: secret.text, key: withoutDigests(key) })),
    undo,
  };
}

/** Brings the keys to what is declared. @throws what `planChanges` and `deliver` throw */
export async function applyDeclaration(
  transaction: Transaction,
  declared: readonly DeclaredKey[],
  { prune = false, deliver, newSecret, newId }: ApplyOptions & { newSecret: () => Secret; newId: () => string },
): Promise<AppliedChanges> {
  const { find, caller, catalog, now } = transaction;
  const plan = await planChanges(find, declared, { prune, caller, catalog, now });
  const created = plan.creates.map((key) => {
    const secret = newSecret();
    return { secret, key: buildDeclaredKey(key, secret, newId(), transaction) };
  });
  if (created.length > 0)
    deliver?.(created.map(({ secret, key }) => ({ secret: secret.text, key: withoutDigests(key) })));

  await transaction.insert(created.map(({ key }) => key));
  for (const { before, after } of plan.updates) {
    // Two entries in the audit log, as if it were done by two commands.
    const updated = { ...after, disabledAt: before.disabledAt };
    await transaction.change(before, updated, 'UPDATE');
    await transaction.change(updated, after, after.disabledAt === null ? 'ENABLE' : 'DISABLE');
  }
  await transaction.delete(plan.deletes);
  return { plan, created };
}

/** Takes an apply back, but for keys that somebody else has changed since. */
export async function undoApply(transaction: Transaction, { plan, created }: AppliedChanges): Promise<void> {
  const { find } = transaction;
  await transaction.delete(await find.findWithDescendants(created.map(({ key }) => key.id)));
  for (const { before, after } of plan.updates) {
    const current = await find.findById(after.id);
    if (current && Object.keys(auditChange(after, current).after).length === 0)
      await transaction.change(current, before, 'UPDATE');
  }
  const taken = new Set(
    (
      await find.findBy(
        'name',
        plan.deletes.map(({ name }) => name),
      )
    ).map(({ name }) => name),
  );
  for (const key of plan.deletes) {
    const orphan = key.createdBy !== null && !(await find.findById(key.createdBy));
    if (!taken.has(key.name) && !orphan) await transaction.insert([key]);
  }
}

function buildDeclaredKey(
  { enabled, ...declared }: DeclaredKey,
  secret: Secret,
  id: string,
  { caller, now }: Transaction,
): StoredKey {
  return {
    ...declared,
    id,
    publicId: secret.publicId,
    createdAt: now,
    createdBy: caller === OPERATOR ? null : caller.key.id,
    disabledAt: enabled === false ? now : null,
    managed: true,
    rotation: null,
    digest: secret.digest,
    previousDigest: null,
  };
}
