import type { AncestorLimit, Chain } from '../keys/authorization/chain.ts';
import { readPermission } from '../keys/authorization/explain.ts';
import { mayFor } from '../keys/authorization/principal.ts';
import { suggestGrants } from '../keys/authorization/suggest.ts';
import type { ApiKey } from '../keys/key/api-key.ts';
import { groupPermissions, PermissionSet, splitPermission } from '../keys/permissions/permission-set.ts';
import type { KeysService } from '../keys/service.ts';
import type { BudgetedContext } from './context.ts';
import type { Resolvers } from './extension.ts';
import type { Loaders } from './loaders.ts';

/** The resolvers for what depends on a key and its ancestors. Those of a whole page are loaded at once. */
export function chainResolversOf(keys: KeysService, loadersOf: (context: BudgetedContext) => Loaders): Resolvers {
  const accesses = new WeakMap<Chain, PermissionSet>();
  const accessOf = (chain: Chain): PermissionSet => {
    const access = accesses.get(chain) ?? keys.accessOf(chain);
    accesses.set(chain, access);
    return access;
  };
  /** Without waiting where that is possible: a promise for each key of a page is expensive. */
  const withChain = <Result>(
    key: ApiKey,
    context: BudgetedContext,
    use: (chain: Chain) => Result,
  ): Result | Promise<Awaited<Result>> => {
    if (key === context.principal.apiKey) return use(context.principal.chain);
    if (key.createdBy === null) return use({ keys: [key], isComplete: true });
    return loadersOf(context)
      .chain.load(key)
      .then((chain) => context.budget.inTurn(() => use(chain))) as Promise<Awaited<Result>>;
  };
  const suggestion = async (key: ApiKey, chain: Chain, context: BudgetedContext) =>
    suggestGrants(chain, await loadersOf(context).usedPermissions.load(key.id), keys.catalog);

  return {
    effectivePermissions: (key: ApiKey, _: object, context: BudgetedContext) =>
      withChain(key, context, (chain) => accessOf(chain).byResource()),
    status: (key: ApiKey, _: object, context: BudgetedContext) =>
      withChain(key, context, (chain) => keys.statusOf(chain)),
    disabledByPolicy: (key: ApiKey, _: object, context: BudgetedContext) =>
      key.disabledAt !== null && loadersOf(context).disabledByPolicy.load(key),
    access: (key: ApiKey, { permission: text }: { permission: string }, context: BudgetedContext) => {
      const permission = readPermission(text, keys.catalog);
      return withChain(key, context, (chain) => {
        const { deniedBy, ...decision } = keys.decide(chain, permission);
        const isReadable = deniedBy !== null && mayFor(context.principal, 'READ', deniedBy);
        return {
          ...decision,
          permission,
          deniedById: deniedBy?.id,
          deniedByName: isReadable ? deniedBy.name : null,
        };
      });
    },
    limitedBy: (key: ApiKey, _: object, context: BudgetedContext) =>
      withChain(key, context, (chain) => keys.limitsOf(chain).map((limit) => limitOf(limit, context))),
    descendants: ({ id }: ApiKey, { first }: { first: number }, { budget, principal }: BudgetedContext) =>
      budget.inSequence(async () => {
        const { keys: found, hasMore } = await keys.descendantsOf(id, first);
        return {
          count: found.length,
          hasMore,
          lastUsedAt: () => lastUseOf(keys, found),
          keys: found.filter((key) => mayFor(principal, 'READ', key)),
        };
      }),
    suggestedRoles: (key: ApiKey, _: object, context: BudgetedContext) =>
      withChain(key, context, async (chain) => (await suggestion(key, chain, context)).roles),
    suggestedPermissions: (key: ApiKey, _: object, context: BudgetedContext) =>
      withChain(key, context, async (chain) => groupPermissions((await suggestion(key, chain, context)).permissions)),
    excessPermissions: (key: ApiKey, _: object, context: BudgetedContext) =>
      withChain(key, context, async (chain) => {
        const { roles, unused } = await suggestion(key, chain, context);
        const kept = PermissionSet.of(keys.catalog, { roles, permissions: [] });
        return groupPermissions(unused.filter((permission) => !kept.has(...splitPermission(permission))));
      }),
    unusedPermissions: (key: ApiKey, _: object, context: BudgetedContext) =>
      withChain(key, context, async (chain) => groupPermissions((await suggestion(key, chain, context)).unused)),
  };

  function limitOf(
    { ancestor, status, expiresAt, permissions, limits, allowFrom }: AncestorLimit,
    { principal }: BudgetedContext,
  ): object {
    return {
      // Not "id": clients that keep what they got by its id would take this for the key itself.
      keyId: ancestor.id,
      name: mayFor(principal, 'READ', ancestor) ? ancestor.name : null,
      status,
      expiresAt,
      permissions: groupPermissions(permissions),
      limits,
      allowFrom,
    };
  }
}

/** When the one of some keys that was used last was accepted, in milliseconds since 1970; null if none ever was. */
async function lastUseOf(keys: KeysService, found: readonly ApiKey[]): Promise<number | null> {
  const usage = await keys.usageOf(found.map(({ id }) => id));
  return [...usage.values()].reduce<number | null>(
    (latest, { lastUsedAt }) => (lastUsedAt !== null && lastUsedAt > (latest ?? 0) ? lastUsedAt : latest),
    null,
  );
}
