import type { Caller, Principal } from '../keys/authorization/index.ts';
import type { Status } from '../keys/key/index.ts';
import type { Permission, PermissionSet } from '../keys/permissions/index.ts';
import type { BudgetedRequest, BudgetLimits } from './execution/index.ts';

/** The context of every resolver. */
export interface GraphQLContext {
  /** The key that makes the request. */
  readonly principal: Principal;
  /** The HTTP request, its body already read. Its own signal is of no use: see `signal`. */
  readonly request: Request;
  /** Aborted when the client has gone or the time of the request is up: pass it on to whatever takes long. */
  readonly signal: AbortSignal;
}

/** Makes what a program's own resolvers find in their context beside that. */
export type CreateContext = (
  context: Omit<GraphQLContext, 'principal'> & { readonly principal: Caller },
) => object | Promise<object>;

/** The context with what only the server itself needs. */
export interface BudgetedContext extends GraphQLContext, BudgetedRequest {}

/** What the schema tells of the service beside its keys. What is missing is null. */
export interface ServiceParts {
  readonly routes?: RouteExplainer | undefined;
  readonly limits?: ServiceLimits | undefined;
}

/** How much there may be, beside what is the same everywhere. */
export interface ServiceLimits {
  /** Failed credentials of one address, such as `20/m`; null for any number. */
  readonly failedCredentials: string | null;
  readonly request: BudgetLimits;
}

/** The routes, and what becomes of requests by them. */
export interface RouteExplainer {
  /** Whether there is a file of configuration. */
  readonly isConfigured: boolean;
  readonly count: number;
  /** So many routes, after so many that are left out. */
  list(leftOut: number, most: number): ExplainedRoute[];
  /** The numbers of the routes that decide in place of one, for each of its requests; empty if it ever decides. */
  hiddenBy(number: number): readonly number[];
  /** What a key may do by a route; undefined if there is none. @param permissions undefined for a refused key */
  accessTo(number: number, permissions: PermissionSet | undefined): RouteAccess | undefined;
  /**
   * What becomes of a request. Nothing is sent.
   * @param caller whose key it has; undefined without a key
   * @throws KeysError INPUT_INVALID if it is not a request
   */
  explain(request: AskedRequest, caller: RouteCaller | undefined): ExplainedRequest;
}

/** A request as somebody has written it. */
export interface AskedRequest {
  readonly method: string;
  readonly url: string;
  /** Whether the CORS preflight is meant that a browser sends before it. */
  readonly preflight: boolean;
}

/** With which methods a key may pass by a route. */
export interface RouteAccess {
  readonly passes: readonly string[];
  readonly passesAll: boolean;
  /** What it lacks for the others. */
  readonly missing: readonly Permission[];
}

export interface RouteCaller {
  readonly name: string;
  readonly status: Status;
  /** What the key may do, if it is accepted. */
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

/** What becomes of a request, as it is published. */
export interface ExplainedRequest {
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

/** What the schema tells about the running program. */
export interface ServiceInfo {
  name: string;
  version: string;
  /** Milliseconds since 1970. */
  startedAt: number;
}
