import { readFileSync } from 'node:fs';
import type { Config } from '../../config/config.ts';
import { badInput, connectionOf, cursorOf, readCursor } from '../../graphql/index.ts';
import { type Principal, requirePermission } from '../../keys/authorization/index.ts';
import { DEFAULT_PAGE_SIZE, KeysError, MAX_PAGE_SIZE, printable, yieldToEventLoop } from '../../keys/basics/index.ts';
import type { ApiKey } from '../../keys/key/index.ts';
import type { PermissionSet } from '../../keys/permissions/index.ts';
import { formatCursor, type KeysService } from '../../keys/service/index.ts';
import { type RouteCaller, RouteExplainer } from './explainer.ts';
import { createRouter } from './router.ts';
import type { QueryExplainRequestArgs, QueryResolvers, Resolvers } from './schema-types.ts';

export const typeDefs = readFileSync(new URL('./schema.graphql', import.meta.url), 'utf8');

export const ROUTES_PAGE_SIZE = 100;
/** The most characters of a URL, as of the query in that of a GET request, and of a method. */
export const MAX_URL_LENGTH = 8192;
const MAX_METHOD_LENGTH = 100;
/** Maximum number of keys checked for one page. */
const MAX_LOOKED_AT = 1000;

/** The resolvers for routes. */
export function resolvers(keys: KeysService, config: Config | undefined): Resolvers {
  const explainer = new RouteExplainer(createRouter(config?.routes ?? []));
  const routes: QueryResolvers['routes'] = async (_, { first, after, ...named }, { principal }) => {
    const limit = first ?? ROUTES_PAGE_SIZE;
    if (limit < 0 || limit > MAX_PAGE_SIZE)
      throw badInput(`"first" is ${limit}; a page has 0 to ${MAX_PAGE_SIZE} routes.`);
    const leftOut = after == null ? 0 : readCursor('route', after);
    const { edges, pageInfo } = connectionOf(
      explainer.list(leftOut, limit),
      (route) => cursorOf('route', route),
      leftOut + limit < explainer.count,
    );
    const key = await findKey(named, principal);
    const permissions = key && permissionsOf(await callerOf(key));
    const accessTo = (number: number) => key && explainer.accessTo(number, permissions);
    return {
      pageInfo,
      edges: edges.map((edge) => ({ ...edge, ...accessTo(edge.node.number) })),
      configured: config?.file !== undefined,
      total: explainer.count,
    };
  };

  const explainRequest: QueryResolvers['explainRequest'] = async (
    _,
    { method, url, preflight, ...named },
    { principal },
  ) => {
    checkLength('method', method ?? '', MAX_METHOD_LENGTH);
    checkLength('url', url, MAX_URL_LENGTH);
    const key = await findKey(named, principal);
    const request = { method: method ?? 'GET', url, preflight: preflight ?? false };
    return { ...explainer.explain(request, key && (await callerOf(key))), apiKey: key };
  };

  const routeKeys: QueryResolvers['routeKeys'] = async (_, { route, method, first, after }, { principal }) => {
    if (!explainer.accessTo(route, undefined)) throw badInput(`There is no route ${route}.`);
    requirePermission(principal, 'API_KEY', 'READ_OWN');
    const limit = first ?? DEFAULT_PAGE_SIZE;
    if (limit < 0 || limit > MAX_PAGE_SIZE)
      throw badInput(`"first" is ${limit}; a page has 0 to ${MAX_PAGE_SIZE} keys.`);
    const found: ApiKey[] = [];
    for (let [place, left] = [after, MAX_LOOKED_AT]; ;) {
      const size = Math.min(left, MAX_PAGE_SIZE);
      const page = await keys.list({ first: size, after: place ?? null }, principal);
      const callers = await callersOf(page.keys);
      for (const [index, key] of page.keys.entries()) {
        const { passes = [] } = explainer.accessTo(route, permissionsOf(callers[index]!)) ?? {};
        if (method == null ? passes.length > 0 : passes.includes(method)) found.push(key);
        const isLast = index === page.keys.length - 1 && !page.hasNextPage;
        if (found.length === limit) return passingPage(found, isLast ? undefined : key);
      }
      left -= page.keys.length;
      const last = page.keys.at(-1);
      if (!page.hasNextPage || !last) return passingPage(found, undefined);
      if (left <= 0) return passingPage(found, last);
      place = formatCursor(last);
      await yieldToEventLoop();
    }
  };

  /** @param last the key that was looked at last; undefined if none is left */
  function passingPage(found: readonly ApiKey[], last: ApiKey | undefined) {
    const { edges, pageInfo } = connectionOf(found, formatCursor, last !== undefined);
    return { edges, pageInfo: { ...pageInfo, endCursor: last ? formatCursor(last) : pageInfo.endCursor } };
  }

  /** @throws ForbiddenError; KeysError NOT_FOUND, also for a key that the caller cannot see */
  async function findKey(
    { keyId, keyName }: Pick<QueryExplainRequestArgs, 'keyId' | 'keyName'>,
    principal: Principal,
  ): Promise<ApiKey | undefined> {
    if (keyId == null && keyName == null) return undefined;
    if (keyId != null && keyName != null) throw badInput('Pass either the id or the name of the key.');
    requirePermission(principal, 'API_KEY', 'READ_OWN');
    const key = await (keyId == null ? keys.findByName(keyName!, principal) : keys.findById(keyId, principal));
    if (key) return key;
    const which = keyId == null ? `named "${printable(keyName!)}"` : `with the id "${printable(keyId)}"`;
    throw new KeysError('NOT_FOUND', `There is no API key ${which}.`);
  }

  async function callerOf(key: ApiKey): Promise<RouteCaller> {
    return (await callersOf([key]))[0]!;
  }

  async function callersOf(asked: readonly ApiKey[]): Promise<RouteCaller[]> {
    const chains = await keys.chainsOf(asked);
    return chains.map((chain, index) => ({
      name: asked[index]!.name,
      status: keys.statusOf(chain),
      permissions: keys.accessOf(chain),
    }));
  }

  return {
    Query: { routes, routeKeys, explainRequest },
    Route: { hiddenBy: ({ number }) => explainer.hiddenBy(number) },
  };
}

/** The permissions of a key that is accepted. */
function permissionsOf({ status, permissions }: RouteCaller): PermissionSet | undefined {
  return status === 'ACTIVE' ? permissions : undefined;
}

function checkLength(argument: string, text: string, most: number): void {
  if (text.length > most) throw badInput(`"${argument}" has ${text.length} characters; at most ${most} are allowed.`);
}
