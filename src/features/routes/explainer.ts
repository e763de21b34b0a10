import { KeysError } from '../../keys/basics/index.ts';
import type { Status } from '../../keys/key/index.ts';
import type { Permission, PermissionSet } from '../../keys/permissions/index.ts';
import { checkAllow, describeAllow, describeExplanation, explain, neededFor } from './decide.ts';
import { parseRequest, preflightOf } from './request.ts';
import type { Match, Route, Router } from './router.ts';

/** A request as it was typed. */
interface AskedRequest {
  readonly method: string;
  readonly url: string;
  /** True for the CORS preflight that a browser sends before it. */
  readonly preflight: boolean;
}

/** The methods that a key can use on a route. */
interface RouteAccess {
  readonly passes: readonly string[];
  readonly passesAll: boolean;
  /** Permissions that it lacks for the others. */
  readonly missing: readonly Permission[];
}

export interface RouteCaller {
  readonly name: string;
  readonly status: Status;
  /** Permissions of the key, if it is accepted. */
  readonly permissions: PermissionSet;
}

/** A route, as it is published. */
export interface ExplainedRoute {
  /** Counted from 1. */
  readonly number: number;
  readonly line: number | undefined;
  readonly host: string;
  readonly path: string;
  readonly methods: readonly string[] | undefined;
  readonly allow: 'OPEN' | 'KEY' | 'ALL' | 'ANY' | 'RESOURCE';
  readonly resource: string | undefined;
  readonly permissions: readonly Permission[];
  readonly requires: string;
  readonly crossSiteAllowed: boolean;
  readonly preflightOpen: boolean;
}

/** A decision about a request, as it is published. */
interface ExplainedRequest {
  readonly outcome: 'ALLOWED' | 'REFUSED' | 'FORBIDDEN';
  readonly reason: string;
  readonly request: { readonly method: string; readonly host: string; readonly path: string } | undefined;
  readonly preflightFor: string | undefined;
  readonly route: ExplainedRoute | undefined;
  readonly used: readonly Permission[];
  readonly missing: readonly Permission[];
  readonly otherCaseOf: ExplainedRoute | undefined;
  readonly after: readonly { readonly route: ExplainedRoute; readonly because: string }[];
  readonly otherMethods: readonly ExplainedRoute[];
}

/** Maximum number of other routes named, of each kind, since there can be thousands. */
const MAX_OTHERS = 20;

/** The routes, and decisions about requests by them. */
export class RouteExplainer {
  readonly #router: Router;

  constructor(router: Router) {
    this.#router = router;
  }

  get count(): number {
    return this.#router.routes.length;
  }

  /** So many routes, after so many that are left out. */
  list(leftOut: number, most: number): ExplainedRoute[] {
    const listed = this.#router.routes.slice(leftOut, leftOut + most);
    return listed.map((route, index) => explained({ route, index: leftOut + index }));
  }

  /** The numbers of the routes that take all requests of a route; empty if some requests reach it. */
  hiddenBy(number: number): readonly number[] {
    return this.#router.findCover(number - 1).map((index) => index + 1);
  }

  /** The access of a key by a route; undefined if there is no such route. @param permissions undefined for a refused key */
  accessTo(number: number, permissions: PermissionSet | undefined): RouteAccess | undefined {
    const route = this.#router.routes[number - 1];
    return route && accessTo(route, permissions);
  }

  /**
   * Explains a decision about a request. Nothing is sent.
   * @param caller the holder of its key; undefined without a key
   * @throws KeysError INPUT_INVALID if it is not a request
   */
  explain({ method, url, preflight }: AskedRequest, caller: RouteCaller | undefined): ExplainedRequest {
    const parsed = parseRequest(method, url);
    if ('refusal' in parsed) throw new KeysError('INPUT_INVALID', parsed.refusal);
    const request = preflight ? preflightOf(parsed.value) : parsed.value;
    const permissions = caller?.status === 'ACTIVE' ? caller.permissions : undefined;
    const explanation = explain(this.#router, request, permissions, MAX_OTHERS);
    const { decision, otherCaseOf, others, otherMethods } = explanation;
    return {
      outcome: ({ allowed: 'ALLOWED', refused: 'REFUSED', forbidden: 'FORBIDDEN' } as const)[decision.outcome],
      reason: describeExplanation(explanation, caller),
      request: explanation.request,
      preflightFor: explanation.preflightFor,
      route: decision.match && explained(decision.match),
      used: 'used' in decision ? decision.used : [],
      missing: 'missing' in decision ? decision.missing : [],
      otherCaseOf: otherCaseOf && explained(otherCaseOf),
      after: others.map(({ match, because }) => ({ route: explained(match), because })),
      otherMethods: otherMethods.map(explained),
    };
  }
}

/** A method of each kind: HEAD and OPTIONS count as GET. */
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

function accessTo({ methods = METHODS, allow }: Route, permissions: PermissionSet | undefined): RouteAccess {
  const missing = new Set<Permission>();
  const passes = methods.filter((method) => {
    const needed = neededFor(allow, method);
    if ('refusal' in needed) return false;
    if (needed.kind === 'open') return true;
    if (!permissions) return false;
    const checked = checkAllow(needed, permissions);
    if (checked.outcome === 'allowed') return true;
    for (const permission of checked.missing) missing.add(permission);
    return false;
  });
  return { passes, passesAll: passes.length === methods.length, missing: [...missing] };
}

function explained({ route, index }: Match): ExplainedRoute {
  const { host, path, methods, allow, crossSiteAllowed = false, preflightOpen, line } = route;
  return {
    number: index + 1,
    line,
    host,
    path,
    methods,
    allow: ({ open: 'OPEN', key: 'KEY', all: 'ALL', any: 'ANY', resource: 'RESOURCE' } as const)[allow.kind],
    resource: allow.kind === 'resource' ? allow.resource : undefined,
    permissions: 'permissions' in allow ? allow.permissions : [],
    requires: describeAllow(allow),
    crossSiteAllowed,
    preflightOpen,
  };
}
