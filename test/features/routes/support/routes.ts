import type { Allow, Route, Router } from '../../../../src/features/routes/router.ts';
import type { RouteRequest } from '../../../../src/features/routes/request.ts';
import type { Random } from '../../../support/random.ts';

const PERMISSION = /^[A-Z_]+:[A-Z_]+$/;

/** Parses a route such as `GET,HEAD example.org/path` or, for all methods, `example.org/path`. */
export function route(pattern: string, allow: Allow | string = 'key', preflightOpen = false): Route {
  const [target = '', methods] = pattern.split(' ').toReversed();
  const slash = target.indexOf('/');
  return {
    host: target.slice(0, slash),
    path: target.slice(slash),
    ...(methods && { methods: methods.split(',') }),
    allow: typeof allow === 'string' ? allowOf(allow) : allow,
    preflightOpen,
  };
}

/** The index of the deciding route; undefined if none matches. */
export function decidingIndex(router: Router, request: RouteRequest): number | undefined {
  const found = router.find(request);
  return found && 'route' in found ? found.index : undefined;
}

/** Parses a requirement: `open`, `key`, `A:READ_ANY` or, for any of several, `A:READ_ANY|B:READ_ANY`. */
function allowOf(text: string): Allow {
  if (text === 'open' || text === 'key') return { kind: text };
  const items = text.split(/[|+]/);
  if (!items.every((item) => PERMISSION.test(item))) throw new RangeError(text);
  return { kind: text.includes('|') ? 'any' : 'all', permissions: items as never };
}

const PATTERNS = {
  hosts: ['a.example.org', 'b.a.example.org', '*.example.org', '*.a.example.org', '*.org', '*'],
  segments: ['a', 'b', 'c', '*', '*'],
};

/** Routes that often match the same requests. */
export function randomRoutes(random: Random, count: number, { hosts, segments } = PATTERNS): Route[] {
  return Array.from({ length: count }, () => {
    const path = random.chance(0.1) ? [] : random.some(segments, 4);
    if (random.chance(0.4)) path.push('**');
    const methods = random.chance(0.5) ? `${[...new Set(random.some(['GET', 'POST', 'PUT'], 3))].join(',')} ` : '';
    return route(`${methods}${random.pick(hosts)}/${path.join('/')}`, random.pick(['open', 'key', 'A:READ_ANY']));
  });
}

/** Names for `randomRoutes`, and some that it does not use. */
const HOSTS = ['a.example.org', 'b.a.example.org', 'x.example.org', 'y.x.a.example.org', 'example.org', 'x.org', 'x'];
const SEGMENTS = ['a', 'b', 'c', 'x'];
export const METHODS = ['GET', 'POST', 'PUT', 'PURGE'];

export function randomRequest(random: Random): RouteRequest {
  const segments = random.chance(0.1) ? [] : random.some(SEGMENTS, 5);
  return { method: random.pick(METHODS), host: random.pick(HOSTS), path: `/${segments.join('/')}` };
}

/** Few enough patterns that `everyRequest` covers everything that they distinguish. */
export const FEW_PATTERNS = { hosts: ['a.example.org', '*.example.org'], segments: ['a', '*'] };

/** Requests for each way to match routes of `FEW_PATTERNS`. */
export function everyRequest(): RouteRequest[] {
  const paths = [''];
  for (const path of paths) if (path.length < 2 * 5) paths.push(`${path}/a`, `${path}/x`);
  return paths.flatMap((path) =>
    METHODS.flatMap((method) =>
      ['a.example.org', 'x.example.org'].map((host) => ({ method, host, path: path || '/' })),
    ),
  );
}

/**
 * The indexes of the matching routes, the deciding one first, found by a slow and simple method: it compares the
 * request with all routes, and sorts the matching ones by a text in which the more specific comes first. Of routes with
 * the same text, only the first counts.
 */
export function slowlyFound(routes: readonly Route[], request: RouteRequest): number[] {
  const ranks = new Map<string, number>();
  for (const [index, candidate] of routes.entries()) {
    const rank = rankOf(candidate, request);
    if (rank !== undefined && !ranks.has(rank)) ranks.set(rank, index);
  }
  return [...ranks.keys()].toSorted().map((rank) => ranks.get(rank)!);
}

function rankOf({ host, path, methods }: Route, request: RouteRequest): string | undefined {
  if (methods && !methods.includes(request.method)) return undefined;
  const hostPattern = host === '*' ? /^/ : new RegExp(`^${host.replaceAll('.', '\\.').replace('*', '.+')}$`);
  if (!hostPattern.test(request.host)) return undefined;
  const pathPattern = path
    .replace(/\/\*\*$/, '(?:/.*)?')
    .replaceAll('/*', '/[^/]+')
    .replace('/[^/]+)?', '/.*)?');
  const wanted = request.path === '/' ? '' : request.path;
  if (!new RegExp(`^${path === '/' ? '' : pathPattern}$`).test(wanted)) return undefined;
  const hostRank = host.startsWith('*') ? 1000 - host.length : 0;
  const pathRank = path.split('/').map((segment) => ({ '*': 2, '**': 3 })[segment] ?? 1);
  return [String(hostRank).padStart(4, '0'), pathRank.join(''), methods ? 1 : 2].join(' ');
}
