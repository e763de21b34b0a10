import { parseHostPattern, parsePathPattern, type Pattern } from './pattern.ts';
import { RouteTree } from './route-tree.ts';
import type { Route } from './route.ts';

/**
 * The routes by the pattern of their host.
 * @throws RangeError if a host or a path is not a pattern
 */
export function treesOf(routes: readonly Route[]): ReadonlyMap<string, RouteTree> {
  const hosts = new Map<string, RouteTree>();
  for (const [index, route] of routes.entries()) {
    const { host, path } = parsedPatterns(route);
    let tree = hosts.get(host);
    if (!tree) hosts.set(host, (tree = new RouteTree()));
    tree.add(path, { route, index });
  }
  return hosts;
}

/** @throws RangeError if the host or the path is not a pattern */
export function parsedPatterns({ host, path }: Route): { host: string; path: string } {
  return { host: valueOf(parseHostPattern(host)), path: valueOf(parsePathPattern(path)) };
}

function valueOf(pattern: Pattern): string {
  if ('fault' in pattern) throw new RangeError(pattern.fault);
  return pattern.value;
}
