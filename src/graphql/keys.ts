import type DataLoader from 'dataloader';
import { type AncestorLimit, type Chain, findAnswering, mayFor, readPermission } from '../keys/authorization/index.ts';
import { type Budget, isBudget, madeOnce } from '../keys/basics/index.ts';
import { namedIssues } from '../keys/changes/index.ts';
import { type ApiKey, NO_USE, previousUseSince, type UseTotals } from '../keys/key/index.ts';
import type { Branch } from '../keys/lists/index.ts';
import { OPERATIONS, operationsOn } from '../keys/operations/index.ts';
import { formatCursor, type KeysService } from '../keys/service/index.ts';
import { groupPermissions, unknownGrantsOf } from '../keys/permissions/index.ts';
import { prefixOf } from '../keys/secret/index.ts';
import type { BudgetedContext } from './context.ts';
import { chainsFor, pageLoader } from './page-loader.ts';
import { badInput, connectionOf, knownTo } from './resolve.ts';
import type { ApiKeyLimit, ApiKeyResolvers, QueryResolvers, Resolvers } from './schema-types.ts';

/** The resolvers for keys. They only shape answers; the service decides what the caller can read. */
export function keyResolversOf(keys: KeysService): Resolvers {
  const does = operationsOn(keys, OPERATIONS);
  const Query: QueryResolvers = {
    me: (_, __, { principal }) => principal.apiKey,
    apiKeys: async (_, args, { principal }) => {
      const page = await does.apiKeys({ query: args }, principal);
      return connectionOf(page.keys, formatCursor, page.hasNextPage);
    },
    apiKey: async (_, { id, name }, { principal }) => {
      if ((id == null) === (name == null)) throw badInput('Pass either the id or the name of the key.');
      return does.apiKey(id == null ? { name: name! } : { id }, principal);
    },
    node: (_, which, { principal }) => does.node(which, principal),
  };
  return {
    // A host's own types name themselves.
    Node: { __resolveType: (node) => ('__typename' in node ? (node.__typename as 'ApiKey') : 'ApiKey') },
    Query,
    ApiKey: apiKeyResolversOf(keys),
  };
}

/** Resolvers for a key's ancestors and usage. Data is loaded for a whole page at once. */
function apiKeyResolversOf(keys: KeysService): ApiKeyResolvers {
  const { catalog } = keys;
  const loadersIn = loadersOf(keys);
  const withChain = chainsFor(keys);
  const accessOf = madeOnce((chain: Chain) => keys.accessOf(chain));
  const useOf = ({ id }: ApiKey, context: BudgetedContext) => loadersIn(context).use.load(id);

  return {
    roles: ({ roles }) => roles.filter((role) => catalog.knows(role)),
    permissions: ({ permissions }) => knownTo(catalog, permissions),
    grants: ({ roles, permissions }) => [...roles, ...permissions],
    unknownGrants: (key) => unknownGrantsOf(key, catalog),
    issued: ({ id }, _, { principal, budget }) =>
      budget.inSequence(async () => namedIssues(await keys.issuedBy([id], principal))),
    answering: (key, _, context) =>
      withChain(key, context, (chain) => {
        const found = findAnswering(chain);
        return found && mayFor(context.principal, 'READ', found.by) ? found.answering : null;
      }),
    prefix: ({ publicId }) => prefixOf(publicId),
    effectivePermissions: (key, _, context) => withChain(key, context, (chain) => accessOf(chain).byResource()),
    status: (key, _, context) => withChain(key, context, (chain) => keys.statusOf(chain)),
    disabledByPolicy: (key, _, context) => key.disabledAt !== null && loadersIn(context).disabledByPolicy.load(key),
    access: (key, { permission: text }, context) => {
      const permission = readPermission(text, catalog);
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
    limitedBy: (key, _, context) =>
      withChain(key, context, (chain) => keys.limitsOf(chain).map((limit) => limitAs(limit, context))),
    ancestors: (key, _, context) =>
      withChain(key, context, (chain) => keys.ancestorsOf(chain).map((limit) => limitAs(limit, context))),
    descendants: ({ id }, { first }, { budget, principal }) =>
      budget.inSequence(async () => {
        const { keys: found, hasMore } = await keys.descendantsOf(id, first);
        return {
          count: found.length,
          hasMore,
          lastUsedAt: () => lastUseOf(keys, found),
          keys: found.filter((key) => mayFor(principal, 'READ', key)),
        };
      }),
    branch: ({ id }, _, context) => loadersIn(context).branch.load(id),
    uses: async (key, _, context) => (await useOf(key, context)).uses,
    lastUsedAt: async (key, _, context) => (await useOf(key, context)).lastUsedAt,
    budgets: (key, _, context) => (key.limits.some(isBudget) ? loadersIn(context).budgets.load(key) : []),
    rotation: (key, _, context) => {
      const rotation = keys.rotationOf(key);
      return (
        rotation && {
          ...rotation,
          previousPrefix: prefixOf(rotation.previousPublicId),
          previousLastUsedAt: async () => previousUseSince(rotation, await useOf(key, context)),
        }
      );
    },
  };
}

function limitAs({ ancestor, permissions, ...limit }: AncestorLimit, { principal }: BudgetedContext): ApiKeyLimit {
  return {
    // Not named "id", since client caches would take this object for the key itself.
    keyId: ancestor.id,
    name: mayFor(principal, 'READ', ancestor) ? ancestor.name : null,
    permissions: groupPermissions(permissions),
    ...limit,
  };
}

/** When one of some keys was last accepted, in milliseconds since 1970; null if none ever was. */
async function lastUseOf(keys: KeysService, found: readonly ApiKey[]): Promise<number | null> {
  const use = await keys.useOf(found.map(({ id }) => id));
  return [...use.values()].reduce<number | null>(
    (latest, { lastUsedAt }) => (lastUsedAt !== null && lastUsedAt > (latest ?? 0) ? lastUsedAt : latest),
    null,
  );
}

/** Loaders of data about keys: for all keys of a page at once, and once per request. */
interface Loaders {
  /** The child keys of a key, by its id. */
  branch: DataLoader<string, Branch>;
  /** The amounts left in the budgets of a key. */
  budgets: DataLoader<ApiKey, readonly Budget[]>;
  disabledByPolicy: DataLoader<ApiKey, boolean>;
  /** The usage of a key, by its id. */
  use: DataLoader<string, UseTotals>;
}

function loadersOf(keys: KeysService): (context: BudgetedContext) => Loaders {
  const of = madeOnce((budget: BudgetedContext['budget']) => createLoaders(keys, budget));
  return ({ budget }) => of(budget);
}

function createLoaders(keys: KeysService, budget: BudgetedContext['budget']): Loaders {
  const loader = <Key, Value>(load: (wanted: readonly Key[]) => Promise<Value[]>) => pageLoader(budget, load);
  return {
    branch: loader(async (ids: readonly string[]) => {
      const { byKey } = await keys.lists.branchesOf(ids);
      return ids.map((id) => byKey.get(id)!);
    }),
    budgets: loader(async (page: readonly ApiKey[]) => {
      const found = await keys.budgetsOf(page);
      return page.map(({ id }) => found.get(id)!);
    }),
    disabledByPolicy: loader(async (page: readonly ApiKey[]) => {
      const found = await keys.disabledByPolicy(page);
      return page.map(({ id }) => found.has(id));
    }),
    use: loader(async (ids: readonly string[]) => {
      const found = await keys.useOf(ids);
      return ids.map((id) => found.get(id) ?? NO_USE);
    }),
  };
}
