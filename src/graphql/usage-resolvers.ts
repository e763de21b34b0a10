import type { ApiKey } from '../keys/key/api-key.ts';
import { previousUseSince } from '../keys/key/usage.ts';
import { prefixOf } from '../keys/secret/secret.ts';
import type { KeysService } from '../keys/service.ts';
import type { UsageRequest } from '../keys/usage/usage-request.ts';
import type { BudgetedContext } from './context.ts';
import type { Resolvers } from './extension.ts';
import type { Loaders } from './loaders.ts';
import { knownTo } from './resolve.ts';
import { splitUsed } from '../keys/authorization/suggest.ts';

/** The resolvers for how a key is used. */
export function usageResolversOf(keys: KeysService, loadersOf: (context: BudgetedContext) => Loaders): Resolvers {
  const { catalog } = keys;
  const usageOf = ({ id }: ApiKey, context: BudgetedContext) => loadersOf(context).usage.load(id);

  return {
    uses: async (key: ApiKey, _: object, context: BudgetedContext) => (await usageOf(key, context)).uses,
    lastUsedAt: async (key: ApiKey, _: object, context: BudgetedContext) => (await usageOf(key, context)).lastUsedAt,
    usage: ({ id }: ApiKey, request: UsageRequest, { budget }: BudgetedContext) =>
      budget.inSequence(async () => (await keys.periodUsageOf(id, request)).periods),
    usedPermissions: async ({ id }: ApiKey, _: object, context: BudgetedContext) =>
      knownTo(catalog, splitUsed(await loadersOf(context).usedPermissions.load(id)).permissions),
    rotation: (key: ApiKey, _: object, context: BudgetedContext) => {
      const rotation = keys.rotationOf(key);
      return (
        rotation && {
          ...rotation,
          previousPrefix: prefixOf(rotation.previousPublicId),
          previousLastUsedAt: async () => previousUseSince(rotation, await usageOf(key, context)),
        }
      );
    },
  };
}
