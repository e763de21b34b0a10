import { type AuditValues, auditChange } from '../keys/audit/audit-entry.ts';
import type { Role } from '../keys/permissions/catalog.ts';
import { type DeclaredKey, type Plan, readDeclaration } from '../keys/apply/declaration.ts';
import type { ResourceActions } from '../keys/permissions/permission-set.ts';
import type { KeysService } from '../keys/service.ts';
import { MAX_DECLARED_KEYS } from './apply-type-defs.ts';
import type { Resolvers } from './extension.ts';
import { refuseNulls } from './nulls.ts';
import { badInput, auditChanges, type Resolve } from './resolve.ts';
import { formatTime } from '../keys/time.ts';

interface DeclaredInput {
  name: string;
  description?: string | null;
  roles?: Role[] | null;
  permissions?: ResourceActions[] | null;
  limits?: string[] | null;
  allowFrom?: string[] | null;
  expiresAt?: string | null;
  enabled?: boolean | null;
}

/** The resolvers for declared keys. */
export function applyResolversOf(keys: KeysService): Resolvers {
  const applyApiKeys: Resolve<{
    input: { keys: DeclaredInput[]; prune: boolean; dryRun: boolean };
  }> = async (_, { input }, { principal }) => {
    refuseNulls(input);
    if (input.keys.length > MAX_DECLARED_KEYS)
      throw badInput(`There are ${input.keys.length} keys; at most ${MAX_DECLARED_KEYS} are allowed.`);
    const declared = await readDeclaration({ keys: input.keys.map(declarationOf) }, keys.catalog);
    const options = { prune: input.prune };
    if (input.dryRun) {
      const plan = await keys.plan(declared, options, principal);
      return { changes: changesIn(plan), created: [], unchanged: plan.unchanged };
    }
    const { plan, created } = await keys.apply(declared, options, principal);
    return {
      changes: changesIn(plan),
      created: created.map((each) => ({ ...each, replaced: [] })),
      unchanged: plan.unchanged,
    };
  };
  return { Mutation: { applyApiKeys } };
}

/** The form in which a file declares a key, so that both are read by the same rules. */
function declarationOf({ permissions, ...fields }: DeclaredInput): object {
  return {
    ...fields,
    permissions:
      permissions && permissions.flatMap(({ resource, actions }) => actions.map((action) => `${resource}:${action}`)),
  };
}

function changesIn({ creates, updates, deletes }: Plan): object[] {
  return [
    ...creates.map((key) => ({ action: 'CREATE', name: key.name, changes: auditChanges(null, valuesOf(key)) })),
    ...updates.map(({ before, after }) => {
      const change = auditChange(before, after);
      return {
        action: 'UPDATE',
        name: after.name,
        keyId: after.id,
        changes: auditChanges(change.before, change.after),
      };
    }),
    ...deletes.map(({ id, name }) => ({ action: 'DELETE', name, keyId: id, changes: [] })),
  ];
}

function valuesOf({ expiresAt, ...key }: DeclaredKey): AuditValues {
  return { ...key, expiresAt: formatTime(expiresAt) };
}
