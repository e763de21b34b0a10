import * as v from 'valibot';
import {
  formatList,
  isRecord,
  type Limit,
  parseRates,
  printable,
  splitLimit,
  suggestion,
  withoutUndefined,
} from '../../keys/basics/index.ts';
import {
  type Catalog,
  type Grant,
  invalidResource,
  invalidRole,
  MAX_KEYS_PER_CREATOR,
  BUILTIN_RESOURCES,
  NAME,
  parsePermissions,
  parseResource,
  parseRoles,
  type Permission,
  type PolicyRules,
  readPolicy,
  ROLES,
} from '../../keys/permissions/index.ts';
import {
  type Allow,
  createRouter,
  failureOf,
  findRouteIssues,
  parseExpectation,
  parseHostPattern,
  parseMethod,
  parsePathPattern,
  type Route,
} from '../../features/routes/index.ts';
import { DEFAULT_CONFIG } from '../config.ts';
import { DURATION, LIMIT, PERMISSION } from '../patterns.ts';
import {
  atMost,
  count,
  distinct,
  either,
  json,
  list,
  map,
  named,
  namesAtMost,
  only,
  optional,
  parsed,
  type Problem,
  readBy,
  required,
  oneOf,
  rule,
  text,
  textWith,
} from '../schema.ts';
import { section, type SectionContext } from '../section.ts';

/** The most resources, and the most roles: each is in the GraphQL schema. */
const MAX_DECLARED = 1000;

const NAMED = { pattern: NAME.source };
const BOTH = 'A resource must be a name, or a map with the field "name", and "credentials".';
const resource = either(
  [
    v.pipe(
      textWith((name) => invalidResource({ name }), NAMED),
      v.transform((name): { name: string; credentials?: boolean } => ({ name })),
    ),
    v.pipe(
      map({
        name: required(v.pipe(v.string(), json(NAMED))),
        credentials: optional(v.boolean(), 'It holds credentials, which keeps it out of VIEWER.'),
      }),
      v.transform(withoutUndefined),
      rule(invalidResource),
    ),
  ],
  BOTH,
);

export const resources = section({
  name: 'resources',
  description:
    'Resources beside the built-in ones: capital letters, digits and underscores, at most 64. VIEWER cannot read ' +
    'those that hold credentials.',
  otherwise: 'none',
  page: 'reference.md',
  schema: () =>
    v.pipe(
      v.array(resource),
      atMost(MAX_DECLARED, 'resources'),
      distinct(
        ({ name }) => name,
        (name) => `"${name}" is declared more than once.`,
      ),
    ),
  into: (resources) => ({ resources }),
});

export const builtinResources = section({
  name: 'builtinResources',
  description:
    'Whether people choose from the built-in resources as well: "shown" after those of your own, or "hidden". Hidden ' +
    'ones stay in force.',
  otherwise: 'shown',
  page: 'reference.md',
  schema: () => oneOf(BUILTIN_RESOURCES),
  into: (builtinResources) => ({ builtinResources }),
});

/** The resources of the file that nothing is wrong with. */
export function validResources(given: unknown) {
  return (Array.isArray(given) ? given : []).flatMap((item) => {
    const read = readBy(resource, item, []);
    return 'output' in read ? [read.output] : [];
  });
}

function permissionsOf(catalog: Catalog, empty?: string) {
  return parsed((items) => parsePermissions(items, catalog), PERMISSION, empty);
}

const PERMISSIONS = 'must be a map of names to lists of permissions.';

export const roles = section({
  name: 'roles',
  description: 'Roles beside the built-in ones, each a list of permissions. Names as those of resources.',
  otherwise: 'none',
  schema: ({ catalog }) =>
    v.pipe(
      named(
        v.pipe(v.string(), rule(invalidRole), json({ ...NAMED, not: { enum: ROLES } })),
        permissionsOf(catalog, 'The role "{field}" needs at least one permission.'),
        PERMISSIONS,
      ),
      namesAtMost(MAX_DECLARED, 'roles'),
    ),
  into: (roles) => ({ roles }),
});

/** The roles of the file that nothing is wrong with. @param catalog with all resources */
export function validRoles(given: unknown, catalog: Catalog): Record<string, readonly Permission[]> {
  const permissions = permissionsOf(catalog);
  const entries = Object.entries(isRecord(given) ? given : {}).flatMap(([name, items]): [string, Permission[]][] => {
    const read = readBy(permissions, items, []);
    if (invalidRole(name) !== undefined) return [];
    return [[name, 'output' in read ? read.output : []]];
  });
  return Object.fromEntries(entries);
}

/** A rule of the policy, as the rules of keys judge it. */
function policyRule<Name extends keyof PolicyRules>(name: Name) {
  return rule<NonNullable<PolicyRules[Name]>>((value) =>
    readPolicy({ [name]: value }).issues.map(({ message }) => message),
  );
}

export const policy = section({
  name: 'policy',
  description: 'Rules for all keys.',
  otherwise: 'none',
  page: '#policy',
  schema: ({ catalog }) =>
    v.pipe(
      map({
        maxLifetime: optional(
          v.pipe(v.string(), policyRule('maxLifetime'), json(DURATION)),
          'How far ahead the expiry of a key can lie.',
          { otherwise: 'any expiry, or none' },
        ),
        requireExpiry: optional(v.boolean(), 'Every key must expire.', { otherwise: 'false' }),
        grantableByKeys: optional(
          parsed((items) => parseNamed(items, catalog), {
            anyOf: [{ type: 'string', pattern: '^\\s*[A-Za-z][A-Za-z0-9_]{0,63}\\s*$' }, PERMISSION],
          }),
          'Roles and permissions that keys can grant.',
          { otherwise: 'what they hold' },
        ),
        maxKeysPerCreator: optional(
          v.pipe(
            v.number('must be a number.'),
            policyRule('maxKeysPerCreator'),
            json({ type: 'integer', minimum: 1, maximum: MAX_KEYS_PER_CREATOR }),
          ),
          'How many live keys a key can have created.',
          { otherwise: 'any number' },
        ),
        disableUnused: optional(
          v.pipe(v.string(), policyRule('disableUnused'), json(DURATION)),
          'After how long without use a key is disabled: a day or more.',
          { otherwise: 'no key is' },
        ),
      }),
      v.transform(withoutUndefined),
    ),
  into: (policy) => ({ policy: { requireExpiry: false, ...policy } }),
});

function parseNamed(items: readonly string[], catalog: Catalog) {
  const parsed = items.map((item) =>
    item.includes(':') ? parsePermissions([item], catalog) : parseRoles([item], catalog),
  );
  const values = new Set(parsed.flatMap(({ values: [grant] }): Grant[] => (grant ? [grant] : [])));
  return { values: [...values], issues: parsed.flatMap(({ issues }) => issues) };
}

const limit = text((given) => {
  const { values, issues } = parseRates([given]);
  return issues.length > 0 ? { refusal: issues.map(({ message }) => message) } : { value: values[0]! };
}, LIMIT);

export const limits = section({
  name: 'limits',
  description: 'How many requests are answered.',
  schema: () =>
    map(
      {
        default: optional(parsed(parseRates, LIMIT), 'For each key that has no limits of its own.', {
          otherwise: 'no limit',
          page: 'limits.md',
        }),
        failedCredentials: optional(limit, 'Wrong keys from one address.', {
          otherwise: '20/m',
          page: 'limits.md#keys-that-are-not-valid',
        }),
      },
      'must be a map with the fields "default" and "failedCredentials".',
    ),
  into: ({ default: all = [], failedCredentials = DEFAULT_CONFIG.limits.failedCredentials }) => ({
    limits: { default: all, failedCredentials },
  }),
});

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
const ALLOW_UNKNOWN = `The field "allow" says nothing that is known. ${ALLOW_FORMS}`;

const NO_METHODS = 'The list "methods" is empty, so that nothing matches. Leave it out for all methods.';
/** The most that one request can count as. */
const MAX_COST = 1_000_000;

const patterns = (field: string) =>
  list(
    v.pipe(
      v.string(),
      v.check((given) => given.trim() !== '', 'An item of this list is empty. Write a name, or "*" for all.'),
      json({ minLength: 1 }),
    ),
    `The list "${field}" is empty. Leave it out if none may be used.`,
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
          'A permission, a list of which all are required, { any: [...] }, key for any valid key, or open.',
          { otherwise: '"resource"' },
        ),
        resource: optional(
          text((given) => parseResource(given, catalog), { examples: ['GRAFANA'] }),
          'In place of allow: READ_ANY, CREATE_ANY, UPDATE_ANY or DELETE_ANY on it, by the method.',
        ),
        mcp: optional(mcp, 'The parts of an MCP server that its keys can use: names, with * for any text.', {
          page: 'agents.md',
        }),
        limit: optional(limit, 'How many of its requests each key can make; with mcp, how many calls.'),
        cost: optional(count(MAX_COST), 'How much a request counts against limits and budgets.', { otherwise: '1' }),
        to: optional(
          textWith((to) => (upstreams.includes(to) ? undefined : unknownUpstream(to, upstreams)), {
            examples: ['wiki'],
          }),
          'The upstream, by its name, that guard passes requests on to.',
        ),
        'cross-site': optional(only('allowed'), 'Pages of other sites can send requests that have a key by Basic.'),
        preflight: optional(only('open'), 'CORS preflights pass without a key.'),
        observe: optional(only(true), 'Lets requests pass that it would refuse, and notes that.'),
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
  return `${suggestion(to, upstreams)}There is no upstream "${printable(to)}". ${known}`;
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
    [
      !!allow && resource !== undefined,
      'resource',
      'The fields "allow" and "resource" are both there. Keep one of them.',
    ],
    [
      !!mcp && (isOpen || resource !== undefined),
      'mcp',
      'With "mcp", the field "allow" must be a permission, permissions, or key.',
    ],
    [!!mcp && !!methods, 'methods', 'With "mcp", leave out "methods": all of MCP goes by one path.'],
    ...(['limit', 'cost'] as const).map((field): [boolean, string, string] => [
      isOpen && route[field] !== undefined,
      field,
      `The field "${field}" is for keys, and this route needs none. Leave it out.`,
    ]),
    [
      limit !== undefined && cost !== undefined && cost > splitLimit(limit).count,
      'cost',
      `A request that counts as ${cost} is never within ${limit}.`,
    ],
    [observing !== undefined, 'observe', observing],
  ];
  return problems.flatMap(([holds, field, message]) =>
    holds ? [{ path: field === '' ? [] : [field], message: message! }] : [],
  );
}

/** The problem of a route that lets pass what it would refuse. */
function problemOfObserving({ allow, mcp, to }: GivenRoute, context: SectionContext): string | undefined {
  if (allow?.kind === 'open') return 'An open route refuses nothing that could be observed. Leave "observe" out.';
  if (mcp) return 'With "mcp", leave out "observe": single tools are not observed.';
  const upstream = upstreamsOf(context)[to ?? ''];
  const sendsCredentials =
    isRecord(upstream) && ['send', 'query', 'basic'].some((field) => upstream[field] !== undefined);
  if (!sendsCredentials) return undefined;
  return `With "observe", everybody would act with the credentials that "${to}" gets. Leave it out.`;
}

export const routes = section({
  name: 'routes',
  description: 'The permissions that requests require. The most specific route decides.',
  otherwise: 'requests handled by routes are refused',
  page: 'routes.md',
  schema: (context) =>
    v.pipe(
      v.array(routeOf(context)),
      v.transform((routes) => {
        for (const { indexes, message } of findRouteIssues(routes)) {
          const [first, second] = indexes;
          context.issues.push({ path: ['routes', second], message, related: ['routes', first] });
        }
        return routes;
      }),
    ),
  into: (routes) => ({ routes }),
});

export const expect = section({
  name: 'expect',
  description: 'Answers that the routes must give. A file whose expectations do not hold is not taken.',
  otherwise: 'nothing is checked',
  page: 'routes.md',
  schema: ({ catalog, given, read, unmet }) =>
    v.pipe(
      v.array(
        text((expected) => parseExpectation(expected, catalog), {
          examples: ['GET https://example.org/api with DOCKER:READ_ANY is allowed'],
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
