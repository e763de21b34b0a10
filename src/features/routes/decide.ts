import { isDeepStrictEqual } from 'node:util';
import { formatList, type OrRefusal, printable } from '../../keys/basics/index.ts';
import type { Status } from '../../keys/key/index.ts';
import {
  actionByMethod,
  type Catalog,
  parsePermissions,
  type Permission,
  PermissionSet,
  splitPermission,
} from '../../keys/permissions/index.ts';
import { canonicalRequest, parseRequest, preflightMethod, type RequestParts, type RouteRequest } from './request.ts';
import { type Allow, type Match, type Needed, parsedPatterns, type Route, type Router } from './router.ts';

const BY_READING = /:READ_(?:ANY|OWN)$/;

/** Checks whether a method only reads, as GET, HEAD and OPTIONS do (RFC 9110, section 9.2.1). */
export function isReading(method: string): boolean {
  return actionByMethod(method) === 'READ_ANY';
}

/** The permissions that a method needs, or the reason it is always refused. */
export function neededFor(allow: Allow, method: string): OrRefusal<Needed> {
  if (allow.kind === 'resource') {
    const action = actionByMethod(method);
    if (action === undefined) return { refusal: `no permission on ${allow.resource} covers ${printable(method, 20)}` };
    return { kind: 'all', permissions: [`${allow.resource}:${action}`] };
  }
  if (!('permissions' in allow) || !goesByMethod(allow) || isReading(method)) return allow;
  const { kind, permissions } = allow;
  const [first, ...others] = permissions.filter((permission) => !BY_READING.test(permission));
  if (first !== undefined) return { kind, permissions: [first, ...others] };
  return { refusal: `${printable(method, 20)} is not allowed by ${permissionsText(kind, permissions)} alone` };
}

/**
 * The permissions that a request needs if all paths are equal, or the reason it is always refused: also if some
 * services would read another method from its query.
 */
export function neededBy(allow: Allow, { method, target }: Pick<RequestParts, 'method' | 'target'>): OrRefusal<Needed> {
  const needed = neededFor(allow, method);
  if ('refusal' in needed) return needed;
  const other = overridingMethods(target).find((each) => !isDeepStrictEqual(neededFor(allow, each), needed));
  return other === undefined ? needed : { refusal: asksFor(other) };
}

/** Checks whether the needed permissions depend on the method. */
export function goesByMethod(allow: Allow): boolean {
  if (!('permissions' in allow)) return allow.kind === 'resource';
  const { readOnly = false, kind, permissions } = allow;
  const isRead = (permission: Permission) => BY_READING.test(permission);
  return readOnly && (kind === 'any' ? permissions.some(isRead) : permissions.every(isRead));
}

function asksFor(method: string): string {
  return `the query asks for ${printable(method, 20)}, which falls under another rule`;
}

/** The requirement of the route that decides about a request, or the reason it is always refused. */
export type Requirement =
  | { readonly match: Match; readonly allow: Needed }
  | { readonly match: Match | undefined; readonly refusal: string };

/** The decision about a request. */
type Decision =
  /** Allowed, with the permissions it used. */
  | { readonly outcome: 'allowed'; readonly match: Match; readonly used: readonly Permission[] }
  /** It requires a key, and has none: 401. */
  | { readonly outcome: 'refused'; readonly match: Match }
  /** The key lacks permissions: all of these or, with `any`, one of them would do. 403. */
  | { readonly outcome: 'forbidden'; readonly match: Match; readonly missing: readonly Permission[] }
  /** No key would help: no route matches, none is for the method, or the request is not canonical. 403. */
  | { readonly outcome: 'forbidden'; readonly match: Match | undefined; readonly refusal: string };

/** Decides about a request. @param permissions of its key; undefined without one */
export function decide(router: Router, request: RequestParts, permissions: PermissionSet | undefined): Decision {
  const requirement = requirementOf(router, request);
  if ('refusal' in requirement) return { outcome: 'forbidden', ...requirement };
  const { match, allow } = requirement;
  if (allow.kind === 'open') return { outcome: 'allowed', match, used: [] };
  if (!permissions) return { outcome: 'refused', match };
  return { match, ...checkAllow(allow, permissions) };
}

/**
 * Finds the requirement of a request before its key is known. A CORS preflight never has a key: it is looked up by the
 * method it asks for, and needs no key if that route allows preflights. Otherwise it counts as any other OPTIONS
 * request.
 */
export function requirementOf(router: Router, request: RequestParts): Requirement {
  const canonical = canonicalRequest(request);
  if ('refusal' in canonical) return { match: undefined, refusal: canonical.refusal };
  const overriding = overridingMethods(request.target);
  const preflight = overriding.length === 0 ? openPreflight(router, request, canonical.value) : undefined;
  if (preflight) return { match: preflight.match, allow: { kind: 'open' } };
  const match = router.find(canonical.value);
  if (!match) return { match, refusal: 'no route matches' };
  if ('otherCaseOf' in match) return { match: undefined, refusal: DIFFERS };
  const needed = neededFor(allowOf(match), canonical.value.method);
  if ('refusal' in needed) return { match, refusal: needed.refusal };
  for (const method of overriding) {
    const other = router.find({ ...canonical.value, method });
    if (!other || 'otherCaseOf' in other || !isDeepStrictEqual(neededFor(other.route.allow, method), needed))
      return { match: undefined, refusal: asksFor(method) };
  }
  return { match, allow: needed };
}

const DIFFERS = 'the path differs from a route only by case, or by how Unicode writes a character';

/** The requirement of a route. Connecting to an MCP server needs the permissions for any of its parts. */
export function allowOf({ route, also }: Match): Allow {
  if (!also) return route.allow;
  const allows = [route, ...also.map((match) => match.route)].map(({ allow }) => allow);
  const permissions = allows.flatMap((allow) => ('permissions' in allow ? allow.permissions : []));
  const [first, ...others] = new Set(permissions);
  if (first === undefined || allows.some(({ kind }) => kind === 'key')) return { kind: 'key' };
  return { kind: 'any', permissions: [first, ...others] };
}

/** A query field that makes some services use another method, in the ways PHP reads names. */
const OVERRIDING = /^ *[_. [](?:http)?method(?:[[\0].*)?$/is;

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
function openPreflight(
  router: Router,
  parts: RequestParts,
  canonical: RouteRequest,
): { match: Match; method: string } | undefined {
  const method = preflightMethod(parts);
  const match = method === undefined ? undefined : router.find({ ...canonical, method });
  return match && 'route' in match && match.route.preflightOpen ? { match, method: method! } : undefined;
}

/** Checks permissions against a requirement, and returns those used or missing. */
export function checkAllow(
  allow: Needed,
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

/** The explanation of a decision. */
export interface Explanation {
  readonly decision: Decision;
  /** The request as routes see it; undefined if it is refused for its form. */
  readonly request: RouteRequest | undefined;
  /** The method that was looked up in place of OPTIONS, for a CORS preflight that passes. */
  readonly preflightFor: string | undefined;
  /** The route from which the path differs only by case, or by how Unicode writes a character, for which it is refused. */
  readonly otherCaseOf: Match | undefined;
  /** The routes that match too, most specific first, and why each comes after the one before it. */
  readonly others: readonly { readonly match: Match; readonly because: string }[];
  /** The routes for the host and the path that are for other methods. */
  readonly otherMethods: readonly Match[];
}

/**
 * Explains the decision about a request.
 * @param permissions of its key; undefined without one
 * @param most other routes to name, of each kind
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

/** The reason one of two matching routes comes first. */
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
    : 'of equal routes, the first one decides';
}

/** `GET, HEAD example.org/api/**`; without methods if it is for all of them. */
export function describePattern({ methods, host, path }: Pick<Route, 'methods' | 'host' | 'path'>): string {
  return `${methods ? `${methods.join(', ')} ` : ''}${host}${path}`;
}

/** `route 3 (GET example.org/api/**)`, counted from 1. */
export function describeMatch({ route, index }: Match): string {
  return `route ${index + 1} (${describePattern(route)})`;
}

/** A requirement in words, to follow "requires": `a valid key`, `A:READ_ANY and B:READ_ANY`. */
export function describeAllow(allow: Allow): string {
  if (allow.kind === 'resource')
    return `READ_ANY, CREATE_ANY, UPDATE_ANY or DELETE_ANY on ${allow.resource}, by the method`;
  if (!('permissions' in allow)) return allow.kind === 'open' ? 'no key' : 'a valid key';
  return permissionsText(allow.kind, allow.permissions);
}

/** The reason of a decision: `the key lacks A:READ_ANY`. */
function describeReason(decision: Decision): string {
  if ('refusal' in decision) return decision.refusal;
  const allow = allowOf(decision.match);
  if (decision.outcome === 'forbidden') return `the key lacks ${permissionsText(allow.kind, decision.missing)}`;
  if (decision.outcome === 'refused') return 'it has no valid key';
  return decision.used.length > 0 ? `the key has ${formatList(decision.used)}` : `it requires ${describeAllow(allow)}`;
}

/** The reason in an explanation. @param key the named key, whose status can be the reason */
export function describeExplanation(
  { decision, preflightFor }: Explanation,
  key: { readonly name: string; readonly status: Status } | undefined,
): string {
  if (key && key.status !== 'ACTIVE' && decision.outcome === 'refused')
    return `API key "${printable(key.name, 100)}" is ${key.status}`;
  return preflightFor === undefined ? describeReason(decision) : `a preflight for ${preflightFor} needs no key here`;
}

/** A decision and its reason: `forbidden by route 3 (…), as the key lacks A:READ_ANY`. */
function describeDecision(decision: Decision): string {
  const { match, outcome } = decision;
  if (!match) return `forbidden, as ${describeReason(decision)}`;
  const by = `${outcome} by ${describeMatch(match)}`;
  if (outcome === 'refused') return `${by}, which requires ${describeAllow(allowOf(match))}`;
  return outcome === 'allowed' ? by : `${by}, as ${describeReason(decision)}`;
}

function permissionsText(kind: Allow['kind'], permissions: readonly Permission[]): string {
  return formatList(permissions, kind === 'any' ? 'or' : 'and');
}

/** An expected decision, declared in the file. */
export interface Expectation {
  /** As it was written. */
  readonly text: string;
  readonly request: RequestParts;
  /** Permissions of the key; undefined without one. */
  readonly permissions: PermissionSet | undefined;
  readonly outcome: Decision['outcome'];
}

const FORM =
  'Write it as "GET https://wiki.example.org/path with WIKI:READ_ANY is allowed". The part about the ' +
  'key can also be "with any key" or "without a key", and the answer "is refused" or "is forbidden".';
const OUTCOMES: readonly string[] = ['allowed', 'refused', 'forbidden'] satisfies Decision['outcome'][];

/** Parses `GET https://example.org/path with R:A, R:A is allowed`. Issues are sentences. */
export function parseExpectation(text: string, catalog: Catalog): OrRefusal<{ value: Expectation }, string[]> {
  const [method = '', url = '', ...words] = text.trim().split(/\s+/);
  const outcome = words.pop() ?? '';
  const is = words.pop();
  const caller = words.join(' ');
  if (is !== 'is' || !OUTCOMES.includes(outcome) || !/^with(?:out a key$| )/.test(caller)) {
    return { refusal: [`"${printable(text, 200)}" is not an expectation. ${FORM}`] };
  }
  const request = parseRequest(method, url);
  const permissions = parseCaller(caller, catalog);
  const issues = [...('refusal' in request ? [request.refusal] : []), ...permissions.issues];
  if ('refusal' in request || issues.length > 0) return { refusal: issues };
  return {
    value: {
      text: text.trim(),
      request: request.value,
      permissions: permissions.value,
      outcome: outcome as Decision['outcome'],
    },
  };
}

function parseCaller(text: string, catalog: Catalog): { value: PermissionSet | undefined; issues: string[] } {
  if (text === 'without a key') return { value: undefined, issues: [] };
  if (text === 'with any key') return { value: new PermissionSet(), issues: [] };
  const { values, issues } = parsePermissions(text.slice('with '.length).split(','), catalog);
  return { value: new PermissionSet(values), issues: issues.map(({ message }) => message) };
}

/** Describes a failed expectation and the actual decision; undefined if it holds. */
export function failureOf({ text, request, permissions, outcome }: Expectation, router: Router): string | undefined {
  const decision = decide(router, request, permissions);
  if (decision.outcome === outcome) return undefined;
  return `"${printable(text, 200)}" does not hold: the request is ${describeDecision(decision)}.`;
}
