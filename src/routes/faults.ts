import { listOf } from '../keys/text.ts';
import { parsedPatterns } from './host-trees.ts';
import { type Match, MethodTable } from './route-tree.ts';
import type { Allow, Route } from './route.ts';

/** Two routes with the same rank that say different things about one request. */
export interface RouteFault {
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
