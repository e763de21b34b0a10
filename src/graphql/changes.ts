import { mayFor } from '../keys/authorization/index.ts';
import { type ApiKey, type NewKey, REMOVABLE_FIELDS } from '../keys/key/index.ts';
import { namedIssues } from '../keys/changes/index.ts';
import { MAX_PAGE_SIZE, withoutUndefined } from '../keys/basics/index.ts';
import { groupPermissions } from '../keys/permissions/index.ts';
import { OPERATIONS, operationsOn } from '../keys/operations/index.ts';
import type { KeysService } from '../keys/service/index.ts';
import { badInput, grantsIn, readKeyChange, refuseNulls } from './resolve.ts';
import type { CreateApiKeyInput, MutationResolvers, QueryResolvers, Resolvers } from './schema-types.ts';

/** The resolvers for changes of keys. They only shape answers; the service decides what is allowed. */
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
