import DataLoader from 'dataloader';
import type { AncestorLimit, Chain } from '../keys/authorization/chain.ts';
import { mayFor } from '../keys/authorization/principal.ts';
import { suggestGrants } from '../keys/authorization/suggest.ts';
import type { ApiKey } from '../keys/key/api-key.ts';
import { groupPermissions } from '../keys/permissions/permission-set.ts';
import type { KeysService } from '../keys/service.ts';
import type { GraphQLContext } from './context.ts';
import type { Resolvers } from './extension.ts';
import { knownTo } from './resolve.ts';

/** The resolvers for what depends on a key and its ancestors. Those of a whole page are loaded at once. */
export function chainResolversOf(keys: KeysService): Resolvers {
  const { catalog } = keys;
  const loader = new DataLoader<ApiKey, Chain>((page) => keys.chainsOf(page), { cache: false });
  /** Without waiting where that is possible: a promise for each key of a page is expensive. */
  const withChain = <Result>(
    key: ApiKey,
    { principal }: GraphQLContext,
    use: (chain: Chain) => Result,
  ): Result | Promise<Awaited<Result>> => {
    if (key === principal.key) return use(principal.chain);
    if (key.createdBy === null) return use({ keys: [key], isComplete: true });
    return loader.load(key).then(use) as Promise<Awaited<Result>>;
  };
  const suggestion = async (key: ApiKey, chain: Chain) =>
    suggestGrants(keys.accessOf(chain), (await keys.usedPermissionsOf(key.id)).keys());

  return {
    effectivePermissions: (key: ApiKey, _: object, context: GraphQLContext) =>
      withChain(key, context, (chain) => knownTo(catalog, keys.accessOf(chain).byResource())),
    status: (key: ApiKey, _: object, context: GraphQLContext) =>
      withChain(key, context, (chain) => keys.statusOf(chain)),
    limitedBy: (key: ApiKey, _: object, context: GraphQLContext) =>
      withChain(key, context, (chain) => keys.limitsOf(chain).map((limit) => limitOf(limit, context))),
    suggestedPermissions: (key: ApiKey, _: object, context: GraphQLContext) =>
      withChain(key, context, async (chain) =>
        knownTo(catalog, groupPermissions((await suggestion(key, chain)).permissions)),
      ),
    unusedPermissions: (key: ApiKey, _: object, context: GraphQLContext) =>
      withChain(key, context, async (chain) =>
        knownTo(catalog, groupPermissions((await suggestion(key, chain)).unused)),
      ),
  };

  function limitOf({ ancestor, status, expiresAt, permissions }: AncestorLimit, { principal }: GraphQLContext): object {
    return {
      id: ancestor.id,
      name: mayFor(principal, 'READ', ancestor) ? ancestor.name : null,
      status,
      expiresAt,
      permissions: knownTo(catalog, groupPermissions(permissions)),
    };
  }
}
