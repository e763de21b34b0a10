import type { RouteRequest } from './request.ts';
import {
  type Match,
  type MethodTable,
  type Route,
  type RouteTree,
  segmentsOf,
  treesOf,
  withoutCase,
} from './route-tree.ts';
import { coverOf } from './faults.ts';

/** The route that would decide about a request if some letters of its path had another case. */
export interface OtherCase {
  readonly otherCaseOf: Match;
}

/** Finds the route that decides about a request. */
export interface Router {
  readonly routes: readonly Route[];
  /** The deciding route, undefined if none matches. The request must be canonical: see `canonicalRequest`. */
  find(request: RouteRequest): Match | OtherCase | undefined;
  /** All routes that match a request, most specific first. The first one decides, if `find` finds one. */
  findAll(request: RouteRequest): Match[];
  /** All routes that match by host and path, each once, most specific first. */
  findForAnyMethod(request: Omit<RouteRequest, 'method'>): Match[];
  /** The indexes of the routes that decide in place of one, for each of its requests; empty if it ever decides. */
  coverOf(index: number): readonly number[];
}

/**
 * Creates a router. Of the routes that match a request, the most specific one decides:
 * 1. by its host: the same name, then the longest `*.` suffix, then `*`;
 * 2. segment by segment of its path, from the left: text, then `*`, then `**`;
 * 3. by its methods: one that lists the request's method, then one that lists none.
 *
 * A route that lists methods, but not the request's, does not match, so the next one decides.
 * Case counts. As some servers ignore it, no route decides in place of a more specific one from whose texts the path
 * differs only by case: `/Admin` must not get past `/admin/**`.
 *
 * A search takes time by how many beginnings of patterns match. These are few, however many routes there are, except
 * where patterns overlap in every segment, by a text in some and `*` in others: then it is linear in their number.
 * @throws RangeError if a host or a path is not a pattern
 */
export function createRouter(routes: readonly Route[]): Router {
  const hosts = treesOf(routes);
  const depth = routes.reduce((most, { path }) => Math.max(most, segmentsOf(path).length), 0);
  const searchFor = ({ method, host, path }: Searched, all: boolean): Search => {
    // One segment more than any route has tells that the path goes on.
    const search: Search = { method, segments: segmentsOf(path, depth + 1), all, found: [] };
    if (searchTree(hosts.get(host), search, 0)) return search;
    for (let dot = host.indexOf('.'); dot !== -1; dot = host.indexOf('.', dot + 1)) {
      if (searchTree(hosts.get(`*${host.slice(dot)}`), search, 0)) return search;
    }
    searchTree(hosts.get('*'), search, 0);
    return search;
  };
  return {
    routes,
    find(request) {
      const { found, otherCaseOf } = searchFor(request, false);
      return otherCaseOf ? { otherCaseOf } : found[0];
    },
    findAll: (request) => searchFor(request, true).found,
    findForAnyMethod: (request) => searchFor({ ...request, method: undefined }, true).found,
    coverOf: (index) => coverOf(hosts, { route: routes[index]!, index }),
  };
}

/** A request; without a method, one with any. */
type Searched = Omit<RouteRequest, 'method'> & { readonly method: string | undefined };

interface Search {
  readonly method: string | undefined;
  readonly segments: readonly string[];
  /** Whether all matches are wanted, in whatever case others are. */
  readonly all: boolean;
  readonly found: Match[];
  otherCaseOf?: Match | undefined;
  /** The segments without their case, where that was needed. */
  withoutCase?: string[];
}

/** Collects matches, most specific first. Each part of the tree is visited once at most. @returns whether it may end */
function searchTree(tree: RouteTree | undefined, search: Search, index: number): boolean {
  if (!tree) return false;
  const { segments } = search;
  if (index === segments.length) return collect(tree.end, search) || collect(tree.rest, search);
  return (
    searchTree(tree.texts?.get(segments[index]!), search, index + 1) ||
    searchOtherCases(tree, search, index) ||
    searchTree(tree.any, search, index + 1) ||
    collect(tree.rest, search)
  );
}

/** Finds a route that would decide next if the case of the segment were another. */
function searchOtherCases(tree: RouteTree, search: Search, index: number): boolean {
  if (search.all || !tree.texts) return false;
  const segment = search.segments[index]!;
  const folded = ((search.withoutCase ??= [])[index] ??= withoutCase(segment));
  return tree.otherCases(segment, folded).some((other) => {
    if (!searchTree(other, search, index + 1)) return false;
    search.otherCaseOf ??= search.found[0];
    return true;
  });
}

function collect(table: MethodTable | undefined, { method, all, found }: Search): boolean {
  if (!table) return false;
  if (method === undefined) {
    for (const match of table.all()) found.push(match);
    return false;
  }
  const match = table.byMethod.get(method);
  if (match) found.push(match);
  if (table.anyMethod && (all || !match)) found.push(table.anyMethod);
  return !all && found.length > 0;
}
