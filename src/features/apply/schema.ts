import { readFileSync } from 'node:fs';
import { auditChange, type AuditValues } from '../../keys/audit/index.ts';
import { formatTime } from '../../keys/basics/index.ts';
import { secretSince } from '../../keys/key/index.ts';
import { auditChanges, badInput, grantsIn, refuseNulls } from '../../graphql/index.ts';
import { operationsOn } from '../../keys/operations/index.ts';
import type { KeysService } from '../../keys/service/index.ts';
import { type DeclaredKey, readDeclaration } from './declaration.ts';
import { applyOperations } from './operations.ts';
import type { Plan } from './plan.ts';
import type { AppliedChange, DeclaredApiKeyInput, Resolvers } from './schema-types.ts';

export const typeDefs = readFileSync(new URL('./schema.graphql', import.meta.url), 'utf8');

/** Maximum number of keys declared in one request. */
export const MAX_DECLARED_KEYS = 1000;

/** The resolver for declarations. */
export function resolvers(keys: KeysService): Resolvers {
  const does = operationsOn(keys, applyOperations.operations);
  return {
    Mutation: {
      applyApiKeys: async (_, { input }, { principal }) => {
        refuseNulls(input);
        if (input.keys.length > MAX_DECLARED_KEYS)
          throw badInput(`There are ${input.keys.length} keys; at most ${MAX_DECLARED_KEYS} are allowed.`);
        const declared = await readDeclaration({ keys: input.keys.map(declarationOf) }, keys.catalog);
        const applied = await does.applyApiKeys(
          { declared, rules: { prune: input.prune ?? false, adopt: false }, dryRun: input.dryRun ?? false },
          principal,
        );
        const { plan, created, rotated } = applied.whole!;
        return { ...appliedIn(plan), created: created.map((each) => ({ ...each, replaced: [] })), rotated };
      },
    },
  };
}

/** The form in which a file declares a key, so that both are read by the same rules. */
function declarationOf({ permissions, ...fields }: DeclaredApiKeyInput): object {
  return { ...fields, permissions: permissions && grantsIn({ permissions }).permissions };
}

function appliedIn(plan: Plan) {
  return { changes: changesIn(plan), waiting: plan.waiting, unchanged: plan.unchanged };
}

function changesIn({ creates, updates, deletes }: Plan): AppliedChange[] {
  return [
    ...creates.map((key): AppliedChange => ({
      action: 'CREATE',
      name: key.name,
      changes: auditChanges(null, valuesOf(key)),
    })),
    ...updates.map(({ action, before, after }): AppliedChange => {
      const change = auditChange(before, after);
      return {
        action,
        name: after.name,
        keyId: after.id,
        secretSince: action === 'ROTATE' ? secretSince(before) : null,
        changes: auditChanges(change.before, change.after),
      };
    }),
    ...deletes.map(({ id, name }): AppliedChange => ({ action: 'DELETE', name, keyId: id, changes: [] })),
  ];
}

function valuesOf({ expiresAt, expiresIn: _expiresIn, rotate: _rotate, ...key }: DeclaredKey): AuditValues {
  return { ...key, expiresAt: formatTime(expiresAt) };
}
