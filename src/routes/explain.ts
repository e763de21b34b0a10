import type { PermissionSet } from '../keys/permissions/permission-set.ts';
import { decide, type Decision, openPreflight } from './decide.ts';
import { type Match, parsedPatterns, type Route } from './route-tree.ts';
import { canonicalRequest, type RequestParts, type RouteRequest } from './request.ts';
import type { Router } from './router.ts';

/** Why a request is decided as it is. */
export interface Explanation {
  readonly decision: Decision;
  /** The request as routes see it; undefined if it is refused for its form. */
  readonly request: RouteRequest | undefined;
  /** The method that was looked up in place of OPTIONS, for a CORS preflight that passes. */
  readonly preflightFor: string | undefined;
  /** The route from which the path differs only by case, for which it is refused. */
  readonly otherCaseOf: Match | undefined;
  /** The routes that match too, most specific first, and why each comes after the one before it. */
  readonly others: readonly { readonly match: Match; readonly because: string }[];
  /** The routes for the host and the path that are for other methods. */
  readonly otherMethods: readonly Match[];
}

/**
 * Explains what becomes of a request.
 * @param permissions what its key may do; undefined if it has none
 * @param most how many other routes are named, of each kind: the first ones
 */
export function explain(
  router: Router,
  parts: RequestParts,
  permissions: PermissionSet | undefined,
  most = Number.POSITIVE_INFINITY,
): Explanation {
  const decision = decide(router, parts, permissions);
  const canonical = canonicalRequest(parts);
  const nothing = { preflightFor: undefined, otherCaseOf: undefined, others: [], otherMethods: [] };
  if ('refusal' in canonical) return { decision, request: undefined, ...nothing };
  const request = canonical.value;
  const found = router.find(request);
  if (!decision.match && found && 'otherCaseOf' in found)
    return { decision, request, ...nothing, otherCaseOf: found.otherCaseOf };
  const preflightFor = openPreflight(router, parts, request)?.method;
  const lookedUp = { ...request, method: preflightFor ?? request.method };
  const matches = router.findAll(lookedUp);
  const others = matches
    .slice(1, most + 1)
    .map((match, index) => ({ match, because: whyBefore(matches[index]!.route, match.route) }));
  const otherMethods = forOtherMethods(router, lookedUp).slice(0, most);
  return { ...nothing, decision, request, preflightFor, others, otherMethods };
}

function forOtherMethods(router: Router, request: RouteRequest): Match[] {
  const found = router.findForAnyMethod(request);
  const others = found.filter(({ route }) => route.methods && !route.methods.includes(request.method));
  return others.toSorted((a, b) => a.index - b.index);
}

/** Why one of two routes that match the same request comes before the other. */
function whyBefore(first: Route, second: Route): string {
  const [one, other] = [parsedPatterns(first), parsedPatterns(second)];
  if (one.host !== other.host) return `${one.host} is more specific than ${other.host}`;
  if (one.path !== other.path) {
    const [segments, otherSegments] = [one, other].map(({ path }) => path.slice(1).split('/')) as [string[], string[]];
    const index = otherSegments.findIndex((segment, at) => segment !== segments[at]);
    return segments[index]
      ? `segment ${index + 1}, ${segments[index]}, is more specific than ${otherSegments[index]}`
      : `${one.path} ends where ${other.path} has **`;
  }
  return first.methods && !second.methods
    ? 'a route that lists the method comes before one that lists none'
    : 'of routes that say the same, the first one counts';
}
