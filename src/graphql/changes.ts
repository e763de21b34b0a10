import { type DeclaredKey, type Plan, readDeclaration } from '../keys/transfer/index.ts';
import { auditChange, type AuditValues } from '../keys/audit/index.ts';
import { mayFor } from '../keys/authorization/index.ts';
import { type ApiKey, type NewKey, REMOVABLE_FIELDS, secretSince } from '../keys/key/index.ts';
import { namedIssues } from '../keys/changes/index.ts';
import { formatTime, MAX_PAGE_SIZE, withoutUndefined } from '../keys/basics/index.ts';
import { groupPermissions } from '../keys/permissions/index.ts';
import { OPERATIONS, operationsOn } from '../keys/operations/index.ts';
import type { KeysService } from '../keys/service/index.ts';
import { auditChanges, badInput, grantsIn, readKeyChange, refuseNulls } from './resolve.ts';
import type {
  AppliedChange,
  CreateApiKeyInput,
  DeclaredApiKeyInput,
  MutationResolvers,
  QueryResolvers,
  Resolvers,
} from './schema-types.ts';

/** The number of keys that one request may declare. */
export const MAX_DECLARED_KEYS = 1000;

/** The resolvers for changes of keys: they shape the answers of the service, which decides what is allowed. */
export function changeResolversOf(keys: KeysService): Resolvers {
  const does = operationsOn(keys, OPERATIONS);
  const Query: QueryResolvers = {
    previewApiKey: async (_, { input }, { principal }) => {
      const preview = await does.previewApiKey({ input: readNewKey(input) }, principal);
      const { roles, permissions, effectivePermissions } = preview;
      return {
        ...preview,
        grants: [...roles, ...permissions],
        effectivePermissions: groupPermissions(effectivePermissions),
      };
    },
  };

  const Mutation: MutationResolvers = {
    createApiKey: async (_, { input }, { principal }) => {
      const { key, apiKey, replaced } = await does.createApiKey({ input: readNewKey(input) }, principal);
      return { key, apiKey, replaced };
    },
    updateApiKey: async (_, { input: { id, ...input } }, { principal }) => {
      return (await does.updateApiKey({ id, change: readKeyChange(input) }, principal)).after;
    },
    setApiKeyEnabled: async (_, input, { principal }) => (await does.setApiKeyEnabled(input, principal)).after,
    rotateApiKey: async (_, { input: { id, ...request } }, { principal }) => {
      const { key, after, created, disabled, issued } = await does.rotateApiKey({ id, request }, principal);
      const readable = (page: readonly ApiKey[]) => page.filter((each) => mayFor(principal, 'READ', each));
      const others = { created: readable(created), disabled: readable(disabled), issued: namedIssues(issued) };
      return { key, apiKey: after, ...others };
    },
    activateApiKeyRotation: async (_, which, { principal }) =>
      (await does.activateApiKeyRotation(which, principal)).after,
    finishApiKeyRotation: async (_, which, { principal }) => (await does.finishApiKeyRotation(which, principal)).after,
    rollBackApiKeyRotation: async (_, which, { principal }) =>
      (await does.rollBackApiKeyRotation(which, principal)).after,
    deleteApiKeys: async (_, { ids }, { principal }) => {
      if (ids.length > MAX_PAGE_SIZE)
        throw badInput(`There are ${ids.length} ids; at most ${MAX_PAGE_SIZE} are allowed.`);
      const deleted = await does.deleteApiKeys({ ids }, principal);
      const issued = async () => namedIssues(await keys.issuedBy(ids, principal));
      return { deleted: deleted.length, keys: deleted, issued };
    },
    applyApiKeys: async (_, { input }, { principal }) => {
      refuseNulls(input);
      if (input.keys.length > MAX_DECLARED_KEYS)
        throw badInput(`There are ${input.keys.length} keys; at most ${MAX_DECLARED_KEYS} are allowed.`);
      const declared = await readDeclaration({ keys: input.keys.map(declarationOf) }, keys.catalog);
      const { plan, created, rotated } = await does.applyApiKeys(
        { declared, rules: { prune: input.prune ?? false, adopt: false }, dryRun: input.dryRun ?? false },
        principal,
      );
      return { ...appliedIn(plan), created: created.map((each) => ({ ...each, replaced: [] })), rotated };
    },
  };

  return { Query, Mutation };
}

function readNewKey(input: CreateApiKeyInput): NewKey {
  refuseNulls(input, REMOVABLE_FIELDS);
  const { roles, permissions, ...fields } = input;
  return {
    ...withoutUndefined({ ...fields, expiresAt: fields.expiresAt ?? undefined }),
    ...grantsIn({ roles, permissions }),
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
