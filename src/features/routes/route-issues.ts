import { type Permission, PermissionSet } from '../../keys/permissions/index.ts';
import { formatList } from '../../keys/basics/index.ts';
import { checkAllow, neededFor } from './decide.ts';
import {
  type Allow,
  type Match,
  MethodTable,
  type Needed,
  parsedPatterns,
  type Route,
  type Router,
  splitSegments,
} from './router.ts';

/** Two routes with the same rank that say different things about one request. */
interface RouteIssue {
  /** Indexes of the two routes, in order. */
  readonly indexes: readonly [first: number, second: number];
  readonly message: string;
}

/**
 * Finds the routes that contradict an earlier one. Two routes have the same rank for one request if their hosts and
 * paths are the same, and both list its method, or neither lists any.
 * @throws RangeError if a host or a path is not a pattern
 */
export function findRouteIssues(routes: readonly Route[]): RouteIssue[] {
  const tables = new Map<string, MethodTable>();
  return routes.flatMap((route, index) => {
    const { host, path } = parsedPatterns(route);
    let table = tables.get(host + path);
    if (!table) tables.set(host + path, (table = new MethodTable()));
    const others = sameRank(table, route);
    table.add({ route, index });
    const match = { route, index };
    const other = others.find((match) => !sayTheSame(match.route, route));
    if (other) return [describeConflict(other, match)];
    const [shared] = others.flatMap((other) => [other, ...(other.also ?? [])].flatMap((each) => samePart(each, match)));
    return shared ? [shared] : [];
  });
}

/** Routes that an earlier one with the same rank comes before. */
function sameRank(table: MethodTable, { methods }: Route): Match[] {
  const matches = methods ? methods.map((method) => table.byMethod.get(method)) : [table.anyMethod];
  return matches.filter((match) => match !== undefined);
}

/** Checks whether two routes agree, or are for parts of the same MCP server. */
function sayTheSame(one: Route, other: Route): boolean {
  if (one.mcp && other.mcp) return one.to === other.to && one.crossSiteAllowed === other.crossSiteAllowed;
  return (
    one.mcp === other.mcp &&
    one.to === other.to &&
    one.preflightOpen === other.preflightOpen &&
    one.limit === other.limit &&
    one.cost === other.cost &&
    (one.crossSiteAllowed ?? false) === (other.crossSiteAllowed ?? false) &&
    normalizeAllow(one.allow) === normalizeAllow(other.allow)
  );
}

/** The issue of two routes that are for the same part of an MCP server. */
function samePart(first: Match, second: Match): RouteIssue[] {
  const { mcp } = second.route;
  if (!mcp || !first.route.mcp || first.index === second.index) return [];
  const kinds = ['tools', 'resources', 'prompts'] as const;
  const twice = kinds.flatMap((kind) => mcp[kind].filter((each) => first.route.mcp![kind].includes(each)));
  if (twice.length === 0) return [];
  const routes = `Routes ${first.index + 1} and ${second.index + 1}`;
  const message = `${routes} are both for ${formatList(twice)}. Keep one of them.`;
  return [{ indexes: [first.index, second.index], message }];
}

/** The same for requirements that mean the same. */
function normalizeAllow(allow: Allow): string {
  if (allow.kind === 'resource') return `resource ${allow.resource}`;
  if (!('permissions' in allow)) return allow.kind;
  const permissions = [...new Set(allow.permissions)].toSorted();
  return `${permissions.length === 1 ? 'all' : allow.kind} ${permissions.join(' ')}`;
}

function describeConflict(first: Match, second: Match): RouteIssue {
  const { host, path, methods } = second.route;
  const shared = methods?.filter((method) => first.route.methods?.includes(method));
  const which = shared ? `, with ${formatList([...new Set(shared)])}, and` : ' and';
  const message =
    `Routes ${first.index + 1} and ${second.index + 1} are both for ${host}${path}${which} say different things. ` +
    'Keep one of them.';
  return { indexes: [first.index, second.index], message };
}

/** A route that would decide instead of a stricter one if the service has a front controller. */
export interface WideRoute {
  readonly match: Match;
  /** A path that the service may read as that of the narrower route. */
  readonly path: string;
  readonly narrower: Match;
}

/** The front controller to look for: the route that decides about it usually decides about any other name, too. */
const FRONT_CONTROLLER = 'index.php';

/**
 * Finds the routes that would allow a request under the path of a front controller, such as `/index.php/admin`, for
 * which a stricter route exists. Each is listed once for a narrower one.
 */
export function findWideRoutes(router: Router): WideRoute[] {
  return router.routes.flatMap((route, index) => {
    const { host, path } = parsedPatterns(route);
    const segments = splitSegments(path).map((segment) => (segment.startsWith('*') ? 'x' : segment));
    const wide = new Map<number, WideRoute>();
    for (let at = 0; at < segments.length; at += 1)
      for (const method of route.methods ?? ['GET', 'POST']) {
        const find = (path: string) => router.find({ method, host: host.replace('*', 'x'), path });
        const own = find(`/${segments.join('/')}`);
        // A route for this method alone decides before one for all methods.
        if (!own || !('route' in own) || own.index !== index) continue;
        const reached = `/${segments.toSpliced(at, 0, FRONT_CONTROLLER).join('/')}`;
        const match = find(reached);
        if (match && 'route' in match && needsMore(route, match.route, method) && !wide.has(match.index))
          wide.set(match.index, { match, path: reached, narrower: { route, index } });
      }
    return [...wide.values()];
  });
}

/**
 * Checks whether one requirement is stricter: a key that just satisfies the other is refused. Permission to change a
 * resource counts as permission to read it, because files have read routes below those for changes.
 */
function needsMore(route: Route, other: Route, method: string): boolean {
  const [allow, than] = [neededFor(route.allow, method), neededFor(other.allow, method)];
  // A refusal is the strictest requirement.
  if ('refusal' in than) return false;
  if ('refusal' in allow) return true;
  if (allow.kind === 'open' || than.kind === 'open') return allow.kind !== 'open';
  return findFewest(than).some((held) => {
    const read = held.map((permission) => permission.replace(/:[A-Z]+_/, ':READ_') as Permission);
    return checkAllow(allow, new PermissionSet([...held, ...read])).outcome === 'forbidden';
  });
}

/** The minimal sets of permissions that satisfy a requirement. */
function findFewest(allow: Needed): readonly (readonly Permission[])[] {
  if (!('permissions' in allow)) return [[]];
  return allow.kind === 'all' ? [allow.permissions] : allow.permissions.map((permission) => [permission]);
}
