import * as v from 'valibot';
import {
  count,
  json,
  list,
  either,
  map,
  only,
  optional,
  type Problem,
  required,
  rule,
  text,
  textWith,
} from '../../../config/schema.ts';
import { PERMISSION } from '../../../config/patterns.ts';
import { section, type SectionContext } from '../../../config/section.ts';
import { limit, permissionsOf } from '../../../config/values.ts';
import {
  formatList,
  isRecord,
  type Limit,
  printable,
  splitLimit,
  suggestion,
  withoutUndefined,
} from '../../../keys/basics/index.ts';
import { type Catalog, parsePermissions, parseResource, type Permission } from '../../../keys/permissions/index.ts';
import { failureOf, parseExpectation } from '../decide.ts';
import { parseHostPattern, parseMethod, parsePathPattern } from '../request.ts';
import { findRouteIssues } from '../route-issues.ts';
import { type Allow, createRouter, type Route } from '../router.ts';

const ALLOW_FORMS =
  'Write a permission, a list of permissions that are all required, { any: [...] }, key for any valid key, or open.';

function allowOf(catalog: Catalog) {
  const permissions = (field: string) =>
    permissionsOf(catalog, `The field "${field}" has no permission. ${ALLOW_FORMS}`);
  const allOf = (kind: 'all' | 'any', [first, ...others]: Permission[]): Allow => ({
    kind,
    permissions: [first!, ...others],
  });
  const one = (given: string) => parsePermissions([given], catalog);
  return either(
    [
      v.pipe(
        v.picklist(['key', 'open']),
        v.transform((kind): Allow => ({ kind })),
      ),
      text((given) => {
        const { values, issues } = one(given);
        return issues.length > 0 ? { refusal: issues.map(({ message }) => message) } : { value: allOf('all', values) };
      }, PERMISSION),
      v.pipe(
        permissions('allow'),
        v.transform((items) => allOf('all', items)),
      ),
      v.pipe(
        map({ any: permissions('any') }, ALLOW_UNKNOWN, (given) => Object.keys(given).join() === 'any'),
        v.transform(({ any }) => allOf('any', any)),
      ),
    ],
    ALLOW_UNKNOWN,
  );
}
const ALLOW_UNKNOWN = `The value of "allow" is unknown. ${ALLOW_FORMS}`;

const NO_METHODS = 'The list "methods" is empty, so nothing matches. Leave it out for all methods.';
/** The most that one request can count as. */
const MAX_COST = 1_000_000;

const patterns = (field: string) =>
  list(
    v.pipe(
      v.string(),
      v.check((given) => given.trim() !== '', 'An item of this list is empty. Write a name, or "*" for all.'),
      json({ minLength: 1 }),
    ),
    `The list "${field}" is empty. Leave it out to allow none.`,
  );
const MCP = 'must be a map with at least one of "tools", "resources" and "prompts".';
const mcp = v.pipe(
  map(
    {
      tools: optional(patterns('tools')),
      resources: optional(patterns('resources')),
      prompts: optional(patterns('prompts')),
    },
    MCP,
    (given) => Object.keys(given).length > 0,
  ),
  json({ minProperties: 1 }),
  v.transform(({ tools = [], resources = [], prompts = [] }) => ({ tools, resources, prompts })),
);

function upstreamsOf({ given: { upstreams } }: SectionContext): Record<string, unknown> {
  return isRecord(upstreams) ? upstreams : {};
}

function routeOf(context: SectionContext) {
  const { catalog } = context;
  const upstreams = Object.keys(upstreamsOf(context));
  return v.pipe(
    map(
      {
        host: required(text(parseHostPattern), 'A host, *.example.org for its subdomains, or * for all.', {
          remedy: ' Write "*" for every host.',
        }),
        path: required(text(parsePathPattern, { pattern: '^/' }), 'Segments: text, * for one, and ** for the rest.'),
        methods: optional(
          list(text(parseMethod, { pattern: '^[^a-z]+$', examples: ['GET', 'HEAD', 'POST'] }), NO_METHODS),
          'Methods in capital letters.',
          { otherwise: 'all methods' },
        ),
        allow: optional(
          allowOf(catalog),
          'A permission, a list of permissions that are all required, { any: [...] }, key for any valid key, or open.',
          { otherwise: 'what "resource" says' },
        ),
        resource: optional(
          text((given) => parseResource(given, catalog), { examples: ['GRAFANA'] }),
          'Instead of allow: READ_ANY, CREATE_ANY, UPDATE_ANY or DELETE_ANY on it, depending on the method.',
        ),
        mcp: optional(mcp, 'Allowed parts of an MCP server: names, with * for any text.', {
          page: 'agents.md',
        }),
        limit: optional(limit, 'Limit of requests for each key on this route; with mcp, of calls.'),
        cost: optional(count(MAX_COST), 'Cost of a request against limits and budgets.', { otherwise: '1' }),
        to: optional(
          textWith((to) => (upstreams.includes(to) ? undefined : unknownUpstream(to, upstreams)), {
            examples: ['wiki'],
          }),
          'Name of the upstream that guard passes requests on to.',
        ),
        'cross-site': optional(only('allowed'), 'Pages of other sites can send requests with a key in Basic.'),
        preflight: optional(only('open'), 'CORS preflights pass without a key.'),
        observe: optional(only(true), 'Allows requests that it would refuse, and records them.'),
      },
      'A route must be a map with the fields "host", "path" and "allow".',
    ),
    rule((route) => routeProblems(route, context)),
    json({ oneOf: [{ required: ['allow'] }, { required: ['resource'] }] }),
    v.transform(({ allow, resource, 'cross-site': crossSite, preflight, ...others }): Route => ({
      ...withoutUndefined(others),
      allow: allow ?? { kind: 'resource', resource: resource! },
      ...(crossSite && { crossSiteAllowed: true }),
      preflightOpen: preflight === 'open',
    })),
  );
}

function unknownUpstream(to: string, upstreams: readonly string[]): string {
  const known = upstreams.length > 0 ? `The upstreams are ${formatList(upstreams)}.` : 'There is no field "upstreams".';
  return `${suggestion(to, upstreams)}The upstream "${printable(to)}" does not exist. ${known}`;
}

interface GivenRoute {
  readonly allow?: Allow | undefined;
  readonly resource?: string | undefined;
  readonly mcp?: object | undefined;
  readonly methods?: readonly string[] | undefined;
  readonly limit?: Limit | undefined;
  readonly cost?: number | undefined;
  readonly to?: string | undefined;
  readonly observe?: true | undefined;
}

/** The fields of a route that do not go together. */
function routeProblems(route: GivenRoute, context: SectionContext): Problem[] {
  const { allow, resource, mcp, methods, limit, cost, observe } = route;
  const isOpen = allow?.kind === 'open';
  const observing = observe ? problemOfObserving(route, context) : undefined;
  const problems: [holds: boolean, field: string, message: string | undefined][] = [
    [!allow && resource === undefined, '', 'The field "allow" is missing.'],
    [!!allow && resource !== undefined, 'resource', 'Both "allow" and "resource" are set. Keep one of them.'],
    [
      !!mcp && (isOpen || resource !== undefined),
      'mcp',
      'With "mcp", the field "allow" must be a permission, permissions, or key.',
    ],
    [!!mcp && !!methods, 'methods', 'With "mcp", leave out "methods": MCP uses one path for everything.'],
    ...(['limit', 'cost'] as const).map((field): [boolean, string, string] => [
      isOpen && route[field] !== undefined,
      field,
      `The field "${field}" is for keys, and this route needs none. Leave it out.`,
    ]),
    [
      limit !== undefined && cost !== undefined && cost > splitLimit(limit).count,
      'cost',
      `A request with the cost ${cost} always exceeds ${limit}.`,
    ],
    [observing !== undefined, 'observe', observing],
  ];
  return problems.flatMap(([holds, field, message]) =>
    holds ? [{ path: field === '' ? [] : [field], message: message! }] : [],
  );
}

/** Finds the problem of an observing route. */
function problemOfObserving({ allow, mcp, to }: GivenRoute, context: SectionContext): string | undefined {
  if (allow?.kind === 'open') return 'An open route refuses nothing that could be observed. Leave "observe" out.';
  if (mcp) return 'With "mcp", leave out "observe": single tools are not observed.';
  const upstream = upstreamsOf(context)[to ?? ''];
  const sendsCredentials =
    isRecord(upstream) && ['send', 'query', 'basic'].some((field) => upstream[field] !== undefined);
  if (!sendsCredentials) return undefined;
  return `With "observe", anyone could use the credentials sent to "${to}". Leave it out.`;
}

export const routes = section({
  description: 'Permissions that requests need. The most specific route decides.',
  otherwise: 'none; where routes decide, every request is refused',
  page: 'routes.md',
  schema: (context) =>
    v.pipe(
      v.array(routeOf(context)),
      v.transform((routes) => {
        for (const { indexes, message } of findRouteIssues(routes)) {
          const [first, second] = indexes;
          context.issues.push({ path: ['routes', second], message, related: ['routes', first] });
        }
        const { lineOf } = context;
        return lineOf ? routes.map((route, index) => ({ ...route, line: lineOf(['routes', index]) })) : routes;
      }),
    ),
  into: (routes) => ({ routes }),
});

export const expect = section({
  description: 'Answers that the routes must give. A file with failed expectations is refused.',
  otherwise: 'nothing is checked',
  page: 'routes.md',
  schema: ({ catalog, given, read, unmet }) =>
    v.pipe(
      v.array(
        text((expected) => parseExpectation(expected, catalog), {
          examples: ['GET https://wiki.example.org/api with WIKI:READ_ANY is allowed'],
        }),
      ),
      v.transform((expectations) => {
        const routes = given['routes'] === undefined ? [] : read.routes;
        const router = routes && createRouter(routes);
        for (const [index, expectation] of expectations.entries()) {
          const failure = router && failureOf(expectation, router);
          if (failure !== undefined) unmet.push({ path: ['expect', index], message: failure });
        }
        return expectations.map((expectation) => expectation.text);
      }),
    ),
  into: (expect) => ({ expect }),
});
