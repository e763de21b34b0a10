import type { NewSecret } from '../changes/delivery.ts';
import { type StoredKey, withoutDigests } from '../key/api-key.ts';
import { auditChange } from '../audit/audit-entry.ts';
import type { DeclaredKey } from './declaration.ts';
import { type Plan, planChanges } from './plan.ts';
import { OPERATOR } from '../authorization/principal.ts';
import { NO_LIMITS } from '../limit.ts';
import type { Secret } from '../secret/secret.ts';
import type { Transaction } from '../changes/transaction.ts';
import { inTurns } from '../turns.ts';

/** What an apply changed, with what only the rules may see. */
export interface AppliedChanges {
  plan: Plan<StoredKey>;
  created: { secret: Secret; key: StoredKey }[];
}

/** What an apply changed. */
export interface AppliedKeys {
  plan: Plan;
  /** The new keys with their secrets, in the order of their declarations. */
  created: NewSecret[];
}

/** The same without digests. */
export function withoutDigestsIn({ plan, created }: AppliedChanges): AppliedKeys {
  const updates = plan.updates.map(({ before, after }) => ({
    before: withoutDigests(before),
    after: withoutDigests(after),
  }));
  return {
    plan: { ...plan, updates, deletes: plan.deletes.map(withoutDigests) },
    created: created.map(({ secret, key }) => ({ key: secret.text, apiKey: withoutDigests(key) })),
  };
}

/** Brings the keys to what is declared. @throws what `planChanges` throws */
export async function applyDeclaration(
  transaction: Transaction,
  declared: readonly DeclaredKey[],
  { prune, adopt, newSecret, newId }: { prune: boolean; adopt: boolean; newSecret: () => Secret; newId: () => string },
): Promise<AppliedChanges> {
  const { find, caller, catalog, now, auditLog } = transaction;
  const plan = await planChanges(find, declared, { prune, adopt, caller, catalog, now, auditLog });
  const created: AppliedChanges['created'] = [];
  for await (const key of inTurns(plan.creates)) {
    const secret = newSecret();
    created.push({ secret, key: buildDeclaredKey(key, secret, newId(), transaction) });
  }
  await transaction.insert(created.map(({ key }) => key));
  await transaction.changeAll(
    plan.updates.map(({ before, after }) => ({
      before,
      // One audit entry for each command that would do the same.
      steps: [
        { action: 'ADOPT', after: { ...before, createdBy: after.createdBy } },
        { action: 'UPDATE', after: { ...after, disabledAt: before.disabledAt } },
        { action: after.disabledAt === null ? 'ENABLE' : 'DISABLE', after },
      ],
    })),
  );
  await transaction.delete(plan.deletes);
  return { plan, created };
}

/** Reverts an apply, but for keys that have been changed since. */
export async function revertApply(transaction: Transaction, { plan, created }: AppliedChanges): Promise<void> {
  const { find } = transaction;
  await transaction.delete(await find.findWithDescendants(created.map(({ key }) => key.id)));
  for (const { before, after } of plan.updates) {
    const current = await find.findById(after.id);
    if (current && Object.keys(auditChange(after, current).after).length === 0)
      await transaction.change(current, before, 'UPDATE');
  }
  const deletedNames = plan.deletes.map(({ name }) => name);
  const taken = new Set((await find.findBy('name', deletedNames)).map(({ name }) => name));
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
    limits: NO_LIMITS,
    allowFrom: null,
    ...declared,
    id,
    publicId: secret.publicId,
    createdAt: now,
    createdBy: caller === OPERATOR ? null : caller.apiKey.id,
    disabledAt: enabled === false ? now : null,
    managed: true,
    rotation: null,
    digest: secret.digest,
    previousDigest: null,
  };
}
