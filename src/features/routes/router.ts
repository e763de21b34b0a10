import { createHash } from 'node:crypto';
import { type Limit, madeOnce } from '../../keys/basics/index.ts';
import type { Permission } from '../../keys/permissions/index.ts';
import { parseHostPattern, parsePathPattern, type Pattern, type RouteRequest } from './request.ts';
import { type Charge, ONCE, type RouteCharge } from '../../keys/authorization/index.ts';

/** The requirement of a request: none, any valid key, or a key with all or any of some permissions. */
export type Needed =
  | { readonly kind: 'open' | 'key' }
  | { readonly kind: 'all' | 'any'; readonly permissions: readonly [Permission, ...Permission[]] };

/** The requirement of a route, which can depend on the method. */
export type Allow =
  /** With `readOnly`, nothing but reading is allowed by READ_ANY and READ_OWN. */
  | (Needed & { readonly readOnly?: boolean })
  /** A key with the permission on this resource that the method needs. */
  | { readonly kind: 'resource'; readonly resource: string };

/** Allowed parts of an MCP server: patterns with `*`, at least one of some kind. */
export interface McpPatterns {
  /** Names of tools. */
  readonly tools: readonly string[];
  /** URIs of resources. */
  readonly resources: readonly string[];
  /** Names of prompts. */
  readonly prompts: readonly string[];
}

/** A declared route: the requirement of matching requests. */
export interface Route {
  /** A host in its canonical form, `*.example.org` for one or more labels before it, or `*` for every host. */
  readonly host: string;
  /** Starts with a slash. Segments: text, `*` for exactly one, and a final `**` for the rest, which can be empty. */
  readonly path: string;
  /** Undefined: all methods. */
  readonly methods?: readonly string[];
  readonly allow: Allow;
  /** The name of the upstream that `guard` passes its requests on to. */
  readonly to?: string;
  /**
   * Allowed parts of an MCP server. Otherwise equal routes are for other parts of the same server; permission for any
   * part allows connecting to it.
   */
  readonly mcp?: McpPatterns;
  /** Limit for each key on this route; with `mcp`, of calls of these parts. */
  readonly limit?: Limit;
  /** Cost of a request against limits and budgets. Default: 1. */
  readonly cost?: number;
  /** Accepts requests from pages of other sites even if a browser adds the key by itself. */
  readonly crossSiteAllowed?: boolean;
  /** CORS preflights pass without a key. */
  readonly preflightOpen: boolean;
  /** Lets refused requests pass, and logs them. */
  readonly observe?: boolean;
  /** Its line in the file that declares it. */
  readonly line?: number;
}

/** A route, and its index in the list that it is from. */
export interface Match {
  readonly route: Route;
  readonly index: number;
  /** Further routes for other parts of the same MCP server. */
  readonly also?: Match[];
}

/** The routes with one pattern, by their methods. Of routes that list the same method, the first one counts. */
export class MethodTable {
  readonly byMethod = new Map<string, Match>();
  /** The route that lists no method. */
  anyMethod: Match | undefined;

  add({ route, index }: Match): void {
    const match = route.mcp ? { route, index, also: [] } : { route, index };
    if (!route.methods) {
      if (this.anyMethod?.route.mcp && route.mcp) this.anyMethod.also!.push(match);
      this.anyMethod ??= match;
    }
    for (const method of route.methods ?? []) {
      if (!this.byMethod.has(method)) this.byMethod.set(method, match);
    }
  }

  /** @param method undefined: any that no route lists */
  find(method: string | undefined): Match | undefined {
    return (method === undefined ? undefined : this.byMethod.get(method)) ?? this.anyMethod;
  }

  /** Each route that counts for some method. */
  all(): Set<Match> {
    return new Set([...this.byMethod.values(), ...(this.anyMethod ? [this.anyMethod] : [])]);
  }
}

/** The routes of one host whose paths begin with the same segments. */
class RouteTree {
  /** By the next segment, which is a text. */
  texts: Map<string, RouteTree> | undefined;
  /** The texts by their form without case: see `withoutCase`. */
  #cases: Map<string, string[]> | undefined;
  /** The branch for the segment `*`. */
  any: RouteTree | undefined;
  /** Routes with exactly this path. */
  end: MethodTable | undefined;
  /** The routes that have `**` here. */
  rest: MethodTable | undefined;

  /** The place of routes with a path. The path must be a parsed pattern. */
  at(path: string): { tree: RouteTree; part: 'end' | 'rest' } {
    const segments = splitSegments(path);
    const part = segments.at(-1) === '**' ? 'rest' : 'end';
    if (part === 'rest') segments.pop();
    return { tree: segments.reduce<RouteTree>((tree, segment) => tree.#next(segment), this), part };
  }

  /** @param path a parsed pattern */
  add(path: string, match: Match): void {
    const { tree, part } = this.at(path);
    (tree[part] ??= new MethodTable()).add(match);
  }

  /** Branches for a text that differs from this one only by case or form. @param folded it `withoutCase` */
  otherCases(segment: string, folded: string): RouteTree[] {
    const texts = this.#cases?.get(folded)?.filter((text) => text !== segment) ?? [];
    return texts.map((text) => this.texts!.get(text)!);
  }

  #next(segment: string): RouteTree {
    if (segment === '*') return (this.any ??= new RouteTree());
    const texts = (this.texts ??= new Map<string, RouteTree>());
    let tree = texts.get(segment);
    if (!tree) {
      texts.set(segment, (tree = new RouteTree()));
      const [cases, folded] = [(this.#cases ??= new Map<string, string[]>()), withoutCase(segment)];
      cases.set(folded, [...(cases.get(folded) ?? []), segment]);
    }
    return tree;
  }
}

/**
 * The same for segments that differ only by case, whether that is ignored by lower case or by upper case, or by the form
 * of their characters in Unicode, as file systems and frameworks change it.
 */
function withoutCase(segment: string): string {
  if (!segment.includes('%')) return segment.toUpperCase();
  return decodeURIComponent(segment).normalize('NFKD').toLowerCase().toUpperCase().normalize('NFKD');
}

/** The segments of a canonical path or of a parsed pattern. @param most how many are needed */
export function splitSegments(path: string, most?: number): string[] {
  return path === '/' ? [] : path.slice(1).split('/', most);
}

/**
 * The routes by the pattern of their host.
 * @throws RangeError if a host or a path is not a pattern
 */
function buildTrees(routes: readonly Route[]): ReadonlyMap<string, RouteTree> {
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
  if ('refusal' in pattern) throw new RangeError(pattern.refusal);
  return pattern.value;
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
  const hosts = buildTrees(routes);
  return routes.flatMap((route, index) => {
    const behind = findCover(hosts, { route, index });
    return behind.length > 0 ? [{ index, behind }] : [];
  });
}

/**
 * The indexes of the routes that take all requests of a route; empty if some requests reach it.
 * @param hosts all routes, as `treesOf` has them
 */
function findCover(hosts: ReadonlyMap<string, RouteTree>, { route, index }: Match): number[] {
  const { host, path } = parsedPatterns(route);
  const { tree, part } = hosts.get(host)!.at(path);
  const covers = (route.methods ?? [undefined]).map((method) => {
    const own = method === undefined ? tree[part]!.anyMethod : tree[part]!.byMethod.get(method);
    if (own!.index !== index) return own!.also?.some((other) => other.index === index) ? undefined : [own!.index];
    return part === 'rest' ? findCoverOfRest(tree, method) : undefined;
  });
  if (covers.includes(undefined)) return [];
  return [...new Set(covers.flatMap((cover) => cover ?? []))].toSorted((a, b) => a - b);
}

/** The routes that leave nothing to a `**` here: one for no segment, and others for one and more. */
function findCoverOfRest(tree: RouteTree, method: string | undefined): number[] | undefined {
  const next = tree.any;
  const end = tree.end?.find(method);
  if (!next || !end) return undefined;
  const rest = next.rest?.find(method);
  const deeper = rest ? [rest.index] : findCoverOfRest(next, method);
  return deeper && [end.index, ...deeper];
}

/** The route that would decide about a request if some letters of its path had another case, or form in Unicode. */
interface OtherCase {
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
  /** The indexes of the routes that take all requests of a route; empty if some requests reach it. */
  findCover(index: number): readonly number[];
}

/**
 * Creates a router. Of the routes that match a request, the most specific one decides:
 * 1. by its host: the same name, then the longest `*.` suffix, then `*`;
 * 2. segment by segment of its path, from the left: text, then `*`, then `**`;
 * 3. by its methods: one that lists the request's method, then one that lists none.
 *
 * A route that lists methods, but not the request's, does not match, so the next one decides.
 * Case counts, and so does the form of characters in Unicode. Some servers ignore both, so no route decides about
 * a path that differs from a more specific route only by these: `/Admin` must not get past `/admin/**`.
 *
 * The time of a search depends on how many beginnings of patterns match. These are few, however many routes there are,
 * unless patterns overlap in every segment, with a text in some and `*` in others: then it is linear in their number.
 * @throws RangeError if a host or a path is not a pattern
 */
export function createRouter(routes: readonly Route[]): Router {
  const hosts = buildTrees(routes);
  const depth = routes.reduce((most, { path }) => Math.max(most, splitSegments(path).length), 0);
  const searchFor = ({ method, host, path }: SearchedRequest, all: boolean): Search => {
    // One more segment than any route has is enough to know that the path continues.
    const search: Search = { method, segments: splitSegments(path, depth + 1), all, found: [] };
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
    findCover: (index) => findCover(hosts, { route: routes[index]!, index }),
  };
}

/** A request; without a method, one with any. */
type SearchedRequest = Omit<RouteRequest, 'method'> & { readonly method: string | undefined };

interface Search {
  readonly method: string | undefined;
  readonly segments: readonly string[];
  /** Collects all matches, including those that differ in case or form. */
  readonly all: boolean;
  readonly found: Match[];
  otherCaseOf?: Match | undefined;
  /** The segments without case and form, computed when needed. */
  withoutCase?: string[];
}

/**
 * Collects matches, most specific first. Visits each part of the tree at most once.
 * @returns whether the search can stop
 */
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

/** Finds a route that would decide next if the case or the form of the segment were another. */
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

/** The charge of a request allowed by a route: its `cost`, also against its `limit`. */
export const chargeOf = madeOnce(({ host, path, methods, mcp, limit, cost = 1 }: Route): Charge => {
  if (limit === undefined && cost === 1) return ONCE;
  const told = JSON.stringify([host, path, methods?.toSorted() ?? null, mcp ?? null]);
  const id = createHash('sha256').update(told).digest('base64url').slice(0, 22);
  return { requests: 1, cost, routes: limit === undefined ? [] : [{ route: id, limit, cost }] };
});

/** The charge of a request allowed by several routes: the largest. */
export function mostOfCharges(charges: readonly Charge[]): Charge {
  const different = [...new Set(charges)];
  if (different.length < 2) return different[0] ?? ONCE;
  const cost = Math.max(...different.map((charge) => charge.cost));
  return { requests: 1, cost, routes: different.flatMap(({ routes }) => routes) };
}

/** The charge of several requests in one; `ONCE` for none. */
export function sumOfCharges(charges: readonly Charge[]): Charge {
  if (charges.length < 2) return charges[0] ?? ONCE;
  const routes = new Map<string, RouteCharge>();
  for (const each of charges.flatMap((charge) => charge.routes))
    routes.set(each.route, { ...each, cost: each.cost + (routes.get(each.route)?.cost ?? 0) });
  const total = (of: 'requests' | 'cost') => charges.reduce((sum, charge) => sum + charge[of], 0);
  return { requests: total('requests'), cost: total('cost'), routes: [...routes.values()] };
}
