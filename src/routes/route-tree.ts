import type { Permission } from '../keys/permissions/catalog.ts';
import { parseHostPattern, parsePathPattern, type Pattern } from './pattern.ts';

/** Who may make a request: anybody, any valid key, or a key with all or any of some permissions. */
export type Allow =
  | { readonly kind: 'open' | 'key' }
  | { readonly kind: 'all' | 'any'; readonly permissions: readonly [Permission, ...Permission[]] };

/** A declared route: what one kind of request requires. */
export interface Route {
  /** A host in its canonical form, `*.example.org` for one or more labels before it, or `*` for every host. */
  readonly host: string;
  /** Starts with a slash. Segments: text, `*` for exactly one, and `**` at the end for the rest, which may be empty. */
  readonly path: string;
  /** Undefined: all methods. */
  readonly methods?: readonly string[];
  readonly allow: Allow;
  /** Whether CORS preflights pass without a key. */
  readonly preflightOpen: boolean;
  /** Its line in the file that declares it. */
  readonly line?: number;
}

/** A route, and its index in the list that it is from. */
export interface Match {
  readonly route: Route;
  readonly index: number;
}

/** The routes with one pattern, by their methods. Of routes that list the same method, the first one counts. */
export class MethodTable {
  readonly byMethod = new Map<string, Match>();
  /** The route that lists no method. */
  anyMethod: Match | undefined;

  add(match: Match): void {
    if (!match.route.methods) this.anyMethod ??= match;
    for (const method of match.route.methods ?? []) {
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
export class RouteTree {
  /** By the next segment, which is a text. */
  texts: Map<string, RouteTree> | undefined;
  /** The texts by what they are without their case: see `withoutCase`. */
  #cases: Map<string, string[]> | undefined;
  /** Where the next segment is `*`. */
  any: RouteTree | undefined;
  /** The routes that end here. */
  end: MethodTable | undefined;
  /** The routes that have `**` here. */
  rest: MethodTable | undefined;

  /** Where the routes with a path belong, which a parsed pattern is. */
  at(path: string): { tree: RouteTree; part: 'end' | 'rest' } {
    const segments = segmentsOf(path);
    const part = segments.at(-1) === '**' ? 'rest' : 'end';
    if (part === 'rest') segments.pop();
    return { tree: segments.reduce<RouteTree>((tree, segment) => tree.#next(segment), this), part };
  }

  /** @param path a parsed pattern */
  add(path: string, match: Match): void {
    const { tree, part } = this.at(path);
    (tree[part] ??= new MethodTable()).add(match);
  }

  /** Where the next segment is a text that differs from this one only by case. @param folded it `withoutCase` */
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

/** The same for segments that differ only by case, whether that is ignored by lower case or by upper case. */
export function withoutCase(segment: string): string {
  const text = segment.includes('%') ? decodeURIComponent(segment) : segment;
  return text.toLowerCase().toUpperCase();
}

/** The segments of a canonical path or of a parsed pattern. @param most how many are needed */
export function segmentsOf(path: string, most?: number): string[] {
  return path === '/' ? [] : path.slice(1).split('/', most);
}

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
  if ('refusal' in pattern) throw new RangeError(pattern.refusal);
  return pattern.value;
}
