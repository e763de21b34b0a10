import { listOf } from '../keys/text.ts';
import {
  type Allow,
  type Match,
  MethodTable,
  parsedPatterns,
  type Route,
  type RouteTree,
  treesOf,
} from './route-tree.ts';

/** Two routes with the same rank that say different things about one request. */
interface RouteFault {
  /** Of the two routes, in their order. */
  readonly indexes: readonly [first: number, second: number];
  readonly message: string;
}

/**
 * Finds the routes that contradict an earlier one. Two routes have the same rank for one request if their hosts and
 * paths are the same, and both list its method, or neither lists any.
 * @throws RangeError if a host or a path is not a pattern
 */
export function findFaults(routes: readonly Route[]): RouteFault[] {
  const tables = new Map<string, MethodTable>();
  return routes.flatMap((route, index) => {
    const { host, path } = parsedPatterns(route);
    let table = tables.get(host + path);
    if (!table) tables.set(host + path, (table = new MethodTable()));
    const others = sameRank(table, route);
    table.add({ route, index });
    const other = others.find((match) => !sayTheSame(match.route, route));
    return other ? [faultOf(other, { route, index })] : [];
  });
}

/** Routes that an earlier one with the same rank comes before. */
function sameRank(table: MethodTable, { methods }: Route): Match[] {
  const matches = methods ? methods.map((method) => table.byMethod.get(method)) : [table.anyMethod];
  return matches.filter((match) => match !== undefined);
}

function sayTheSame(one: Route, other: Route): boolean {
  return one.preflightOpen === other.preflightOpen && formOf(one.allow) === formOf(other.allow);
}

/** The same for requirements that mean the same. */
function formOf(allow: Allow): string {
  if (!('permissions' in allow)) return allow.kind;
  const permissions = [...new Set(allow.permissions)].toSorted();
  return `${permissions.length === 1 ? 'all' : allow.kind} ${permissions.join(' ')}`;
}

function faultOf(first: Match, second: Match): RouteFault {
  const { host, path, methods } = second.route;
  const shared = methods?.filter((method) => first.route.methods?.includes(method));
  const which = shared ? `, with ${listOf([...new Set(shared)])}, and` : ' and';
  const message =
    `Routes ${first.index + 1} and ${second.index + 1} are both for ${host}${path}${which} say different things. ` +
    'Keep one of them.';
  return { indexes: [first.index, second.index], message };
}

/** A route that never decides. */
interface UnreachableRoute {
  readonly index: number;
  /** The indexes of those that decide in its place. */
  readonly behind: readonly number[];
}

/**
 * Finds the routes that can never match, because others come before them for each of their requests.
 * Those have the same host and path, as other patterns always leave some text to it; or they are a pattern without its
 * `**` and one with a `*` before it, which together leave nothing to it.
 * @throws RangeError if a host or a path is not a pattern
 */
export function findUnreachable(routes: readonly Route[]): UnreachableRoute[] {
  const hosts = treesOf(routes);
  return routes.flatMap((route, index) => {
    const behind = coverOf(hosts, { route, index });
    return behind.length > 0 ? [{ index, behind }] : [];
  });
}

/**
 * The indexes of the routes that decide in place of one, for each of its requests; empty if it ever decides.
 * @param hosts all routes, as `treesOf` has them
 */
export function coverOf(hosts: ReadonlyMap<string, RouteTree>, { route, index }: Match): number[] {
  const { host, path } = parsedPatterns(route);
  const { tree, part } = hosts.get(host)!.at(path);
  const covers = (route.methods ?? [undefined]).map((method) => {
    const own = method === undefined ? tree[part]!.anyMethod : tree[part]!.byMethod.get(method);
    if (own!.index !== index) return [own!.index];
    return part === 'rest' ? coverOfRest(tree, method) : undefined;
  });
  if (covers.includes(undefined)) return [];
  return [...new Set(covers.flatMap((cover) => cover ?? []))].toSorted((a, b) => a - b);
}

/** The routes that leave nothing to a `**` here: one for no segment, and others for one and more. */
function coverOfRest(tree: RouteTree, method: string | undefined): number[] | undefined {
  const next = tree.any;
  const end = tree.end?.find(method);
  if (!next || !end) return undefined;
  const rest = next.rest?.find(method);
  const deeper = rest ? [rest.index] : coverOfRest(next, method);
  return deeper && [end.index, ...deeper];
}
