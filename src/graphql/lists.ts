import { MAX_PAGE_SIZE } from '../keys/basics/index.ts';
import { OPERATIONS, operationsOn } from '../keys/operations/index.ts';
import type { KeysService } from '../keys/service/index.ts';
import { badInput, readKeyChange } from './resolve.ts';
import type { MutationResolvers, QueryResolvers, Resolvers } from './schema-types.ts';

/** The resolvers for lists of keys, and for changes of many. */
export function listResolversOf(keys: KeysService): Resolvers {
  const does = operationsOn(keys, OPERATIONS);
  const Query: QueryResolvers = {
    apiKeyList: async (_, args, { principal }) => {
      const { first, offset, sort, descending, createdByOperator, createdBy, ...filter } = args;
      if (createdByOperator && createdBy != null)
        throw badInput('Pass either "createdBy" or "createdByOperator", not both.');
      const { isSorted, ...page } = await does.apiKeyList(
        {
          query: {
            ...filter,
            first: first ?? 50,
            offset: offset ?? 0,
            sort: sort ?? 'CREATED',
            descending: descending ?? true,
            createdBy: createdByOperator ? '' : createdBy,
          },
        },
        principal,
      );
      return { ...page, sorted: isSorted };
    },
    apiKeyChangePlan: async (_, { ids, change: what, expiresAt, update }, { principal }) => {
      const request = { what, expiresAt, change: update == null ? undefined : readKeyChange(update) };
      const { keys: total, ...plan } = await does.apiKeyChangePlan({ ids: atMost(ids), request }, principal);
      return {
        ...plan,
        total,
        refused: plan.refused.map(({ key: apiKey, refusal }) => ({ apiKey, ...refusal })),
      };
    },
  };
  const Mutation: MutationResolvers = {
    narrowApiKeys: async (_, { input: { ids, expiresAt } }, { principal }) => {
      const request = { what: expiresAt == null ? 'DISABLE' : 'EXPIRE', expiresAt } as const;
      const changed = await does.narrowApiKeys({ ids: atMost(ids), request }, principal);
      return { keys: changed.map(({ after }) => after) };
    },
    updateApiKeys: async (_, { ids, update }, { principal }) => {
      const request = { what: 'UPDATE', change: readKeyChange(update) } as const;
      const changed = await does.updateApiKeys({ ids: atMost(ids), request }, principal);
      return { keys: changed.map(({ after }) => after) };
    },
  };
  return { Query, Mutation };
}

/** @throws GraphQLError INPUT_INVALID */
function atMost(ids: readonly string[]): readonly string[] {
  if (ids.length <= MAX_PAGE_SIZE) return ids;
  throw badInput(`There are ${ids.length} ids; at most ${MAX_PAGE_SIZE} are allowed.`);
}
