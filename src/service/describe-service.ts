import {
  type BudgetLimits,
  Budgets,
  type ExplainedRoute,
  type RouteAccess,
  type RouteExplainer,
  type ServiceParts,
} from '../graphql/index.ts';
import { failedCredentialsBy } from '../http/index.ts';
import { KeysError } from '../keys/basics/index.ts';
import type { Permission, PermissionSet } from '../keys/permissions/index.ts';
import {
  checkAllow,
  describeAllow,
  describeExplanation,
  explain,
  type Match,
  neededFor,
  parseRequest,
  preflightOf,
  type Route,
  type Router,
} from '../features/routes/index.ts';

/** How many routes are named beside the one that decides, of each kind: there may be thousands. */
const MAX_OTHERS = 20;

/** What the schema tells of routes. @param isConfigured whether there is a file of configuration */
function routeExplainer(router: Router, isConfigured: boolean): RouteExplainer {
  const { routes } = router;
  return {
    isConfigured,
    count: routes.length,
    list: (leftOut, most) =>
      routes.slice(leftOut, leftOut + most).map((route, index) => explained({ route, index: leftOut + index })),
    hiddenBy: (number) => router.findCover(number - 1).map((index) => index + 1),
    accessTo: (number, permissions) => {
      const route = routes[number - 1];
      return route && accessTo(route, permissions);
    },
    explain: ({ method, url, preflight }, caller) => {
      const parsed = parseRequest(method, url);
      if ('refusal' in parsed) throw new KeysError('INPUT_INVALID', parsed.refusal);
      const request = preflight ? preflightOf(parsed.value) : parsed.value;
      const permissions = caller?.status === 'ACTIVE' ? caller.permissions : undefined;
      const explanation = explain(router, request, permissions, MAX_OTHERS);
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
    },
  };
}

/** One of each kind: HEAD and OPTIONS are taken for GET. */
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

/** What a service is made of, as far as its schema tells of it. */
interface DescribedService {
  router: Router;
  /** The file of configuration; undefined if there is none. */
  file: string | undefined;
  limits?: Partial<BudgetLimits>;
  failedCredentials?: string | false;
}

/** What the schema tells of a service. @throws RangeError if a limit is invalid */
export function describeService({ router, file, limits, failedCredentials }: DescribedService): ServiceParts {
  return {
    routes: routeExplainer(router, file !== undefined),
    limits: {
      failedCredentials: failedCredentialsBy(failedCredentials)?.limit ?? null,
      request: new Budgets(limits).limits,
    },
  };
}
