import { readFileSync } from 'node:fs';
import { type BudgetedContext, chainsFor, knownTo, pageLoader } from '../../graphql/index.ts';
import { madeOnce } from '../../keys/basics/index.ts';
import type { ApiKey } from '../../keys/key/index.ts';
import { operationsOn } from '../../keys/operations/index.ts';
import { groupPermissions, PermissionSet, splitPermission } from '../../keys/permissions/index.ts';
import type { KeysService } from '../../keys/service/index.ts';
import { usageOperations } from './operations.ts';
import type { Resolvers } from './schema-types.ts';
import { splitUsed, suggestGrants, USED_GRANTS } from './suggest.ts';
import { Usage } from './usage.ts';

export const typeDefs = readFileSync(new URL('./schema.graphql', import.meta.url), 'utf8');

/** The resolvers for how requests ended, and for the grants that keys used and need. */
export function resolvers(keys: KeysService): Resolvers {
  const does = operationsOn(keys, usageOperations);
  const withChain = chainsFor(keys);
  const loaderOf = madeOnce((budget: BudgetedContext['budget']) =>
    pageLoader(budget, async (ids: readonly string[]) => {
      const found = await keys.port(USED_GRANTS).of(ids);
      return ids.map((id) => found.get(id)!);
    }),
  );
  const usedBy = async ({ id }: ApiKey, { budget }: BudgetedContext) => splitUsed(await loaderOf(budget).load(id));
  const suggestionFor = async (key: ApiKey, context: BudgetedContext) =>
    withChain(key, context, async (chain) =>
      suggestGrants(chain, await loaderOf(context.budget).load(key.id), keys.catalog),
    );
  return {
    Query: {
      serviceUsage: async (_, request, { principal }) => (await does.serviceUsage({ request }, principal)).periods,
    },
    ApiKey: {
      usage: ({ id }, request, { budget }) =>
        budget.inSequence(async () => (await keys.feature(Usage).byPeriod(id, request)).periods),
      usedPermissions: async (key, _, context) => knownTo(keys.catalog, (await usedBy(key, context)).permissions),
      usedTools: async (key, _, context) => (await usedBy(key, context)).tools,
      usedRoutes: async (key, _, context) => (await usedBy(key, context)).routes,
      suggestedRoles: async (key, _, context) => (await suggestionFor(key, context)).roles,
      suggestedPermissions: async (key, _, context) =>
        groupPermissions((await suggestionFor(key, context)).permissions),
      unusedPermissions: async (key, _, context) => groupPermissions((await suggestionFor(key, context)).unused),
      excessPermissions: async (key, _, context) => {
        const { roles, unused } = await suggestionFor(key, context);
        const kept = PermissionSet.of(keys.catalog, { roles, permissions: [] });
        return groupPermissions(unused.filter((permission) => !kept.has(...splitPermission(permission))));
      },
    },
  };
}
