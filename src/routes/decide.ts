import { isDeepStrictEqual } from 'node:util';
import type { Permission } from '../keys/permissions/catalog.ts';
import { type PermissionSet, splitPermission } from '../keys/permissions/permission-set.ts';
import { printable } from '../keys/text.ts';
import { canonicalRequest, preflightMethod, type RequestParts, type RouteRequest } from './request.ts';
import type { Allow, Match } from './route-tree.ts';
import type { Router } from './router.ts';

/** What a request requires, by the route that decides about it; or why none may pass. */
export type Requirement =
  | { readonly match: Match; readonly allow: Allow }
  | { readonly match: undefined; readonly refusal: string };

/** Whether a request may pass. */
export type Decision =
  /** It may. `used`: the permissions that it needed. */
  | { readonly outcome: 'allowed'; readonly match: Match; readonly used: readonly Permission[] }
  /** It requires a key, and has none: 401. */
  | { readonly outcome: 'refused'; readonly match: Match }
  /** The key lacks permissions: all of these or, with `any`, one of them would do. 403. */
  | { readonly outcome: 'forbidden'; readonly match: Match; readonly missing: readonly Permission[] }
  /** No key would help: no route matches, or the request is not canonical. 403. */
  | { readonly outcome: 'forbidden'; readonly match: undefined; readonly refusal: string };

/** Decides about a request. @param permissions what its key may do; undefined if it has none */
export function decide(router: Router, request: RequestParts, permissions: PermissionSet | undefined): Decision {
  const requirement = requirementOf(router, request);
  if (!requirement.match) return { outcome: 'forbidden', ...requirement };
  const { match, allow } = requirement;
  if (allow.kind === 'open') return { outcome: 'allowed', match, used: [] };
  if (!permissions) return { outcome: 'refused', match };
  return { match, ...checkAllow(allow, permissions) };
}

/**
 * What a request requires: known before its key is.
 * A CORS preflight, which never has a key, is looked up by the method that it asks for, and needs none if that route
 * lets preflights pass. Otherwise it is an OPTIONS request as any other.
 */
export function requirementOf(router: Router, request: RequestParts): Requirement {
  const canonical = canonicalRequest(request);
  if ('refusal' in canonical) return { match: undefined, refusal: canonical.refusal };
  const overriding = overridingMethods(request.target);
  const preflight = overriding.length === 0 ? openPreflight(router, request, canonical.value) : undefined;
  if (preflight) return { match: preflight.match, allow: { kind: 'open' } };
  const match = router.find(canonical.value);
  if (!match) return { match, refusal: 'no route matches' };
  if ('otherCaseOf' in match) return { match: undefined, refusal: 'the path differs from a route only by case' };
  for (const method of overriding) {
    const other = router.find({ ...canonical.value, method });
    if (!other || 'otherCaseOf' in other || !isDeepStrictEqual(other.route.allow, match.route.allow))
      return { match: undefined, refusal: `the query asks for ${printable(method, 20)}, which another rule is for` };
  }
  return { match, allow: match.route.allow };
}

/** A field of a query by which some services take a request for one with another method, as PHP names it, too. */
const OVERRIDING = /^ *[_. [](?:http)?method(?:\[.*)?$/is;

/** The methods that the query of a request asks for. */
function overridingMethods(target: string): string[] {
  const query = target.indexOf('?');
  // Most have none.
  if (query === -1 || !/method|%/i.test(target)) return [];
  return Array.from(new URLSearchParams(target.slice(query + 1).replaceAll(';', '&')))
    .filter(([name]) => OVERRIDING.test(name))
    .map(([, value]) => value.toUpperCase());
}

/** The route that lets a request pass as a CORS preflight, and the method that this asks for. */
export function openPreflight(
  router: Router,
  parts: RequestParts,
  canonical: RouteRequest,
): { match: Match; method: string } | undefined {
  const method = preflightMethod(parts);
  const match = method === undefined ? undefined : router.find({ ...canonical, method });
  return match && 'route' in match && match.route.preflightOpen ? { match, method: method! } : undefined;
}

/** Whether a key may pass, and which of its permissions were needed, or which it lacks. */
export function checkAllow(
  allow: Allow,
  permissions: PermissionSet,
):
  | { readonly outcome: 'allowed'; readonly used: readonly Permission[] }
  | { readonly outcome: 'forbidden'; readonly missing: readonly Permission[] } {
  if (!('permissions' in allow)) return { outcome: 'allowed', used: [] };
  const has = (permission: Permission) => permissions.has(...splitPermission(permission));
  if (allow.kind === 'any') {
    const first = allow.permissions.find(has);
    return first ? { outcome: 'allowed', used: [first] } : { outcome: 'forbidden', missing: allow.permissions };
  }
  const missing = allow.permissions.filter((permission) => !has(permission));
  return missing.length > 0 ? { outcome: 'forbidden', missing } : { outcome: 'allowed', used: allow.permissions };
}
