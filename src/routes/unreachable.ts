import { parsedPatterns, treesOf } from './host-trees.ts';
import type { Match, RouteTree } from './route-tree.ts';
import type { Route } from './route.ts';

/** A route that never decides. */
export interface UnreachableRoute {
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
