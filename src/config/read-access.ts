import {
  type DocumentIssue,
  type DocumentPath,
  formatList,
  isRecord,
  type Limit,
  parseRates,
  printable,
  splitLimit,
  suggestion,
  withoutUndefined,
} from '../keys/basics/index.ts';
import {
  type Catalog,
  type HostResource,
  invalidResource,
  invalidRole,
  parsePermissions,
  parseResource,
  parseRoles,
  type Permission,
  POLICY_RULES,
  type PolicyRules,
  readPolicy,
} from '../keys/permissions/index.ts';
import {
  type Allow,
  createRouter,
  type Expectation,
  failureOf,
  findRouteIssues,
  type McpPatterns,
  parseExpectation,
  parseHostPattern,
  parseMethod,
  parsePathPattern,
  type Pattern,
  type Route,
} from '../routes/index.ts';
import { type Config, DEFAULT_CONFIG } from './config.ts';
import type { ConfigReader } from './config-reader.ts';

export const RESOURCE_FIELDS = ['name', 'credentials'] as const;
/** The most resources, and the most roles: each is in the GraphQL schema. */
export const MAX_DECLARED = 1000;

/** Reads the installation's own resources. If there are issues, those that remain are valid. */
export function readResources(reader: ConfigReader, value: unknown): HostResource[] {
  const names = new Set<string>();
  const list = reader.list(value, ['resources']);
  return reader.firstOf(list, ['resources'], MAX_DECLARED).flatMap((item, index) => {
    const resource = readResource(reader, item, index);
    if (!resource) return [];
    if (names.has(resource.name)) reader.report(['resources', index], `"${resource.name}" is declared more than once.`);
    names.add(resource.name);
    return [resource];
  });
}

function readResource(reader: ConfigReader, item: unknown, index: number): Exclude<HostResource, string> | undefined {
  const path = ['resources', index];
  if (typeof item !== 'string' && !isRecord(item))
    return reader.report(path, 'A resource must be a name, or a map with the field "name", and "credentials".');
  const { name: given, credentials } =
    typeof item === 'string' ? { name: item } : reader.knownFields(item, path, RESOURCE_FIELDS);
  if (given === undefined) return reader.missing(path, 'name');
  const name = reader.text(given, typeof item === 'string' ? path : [...path, 'name']);
  if (name === undefined) return undefined;
  if (credentials !== undefined && typeof credentials !== 'boolean')
    return reader.report([...path, 'credentials'], 'The field "credentials" must be true or false.');
  const resource = { name, ...(credentials !== undefined && { credentials }) };
  const problem = invalidResource(resource);
  return problem === undefined ? resource : reader.report(path, problem);
}

/** Reads the installation's own roles. @param catalog with all resources */
export function readRoles(
  reader: ConfigReader,
  value: unknown,
  catalog: Catalog,
): Record<string, readonly Permission[]> {
  if (value === undefined) return {};
  if (!isRecord(value))
    return reader.report(['roles'], 'The field "roles" must be a map of names to lists of permissions.') ?? {};
  const names = reader.firstOf(Object.keys(value), ['roles'], MAX_DECLARED);
  const roles = names.flatMap((name): [string, Permission[]][] => {
    const problem = invalidRole(name);
    if (problem !== undefined) reader.issues.push({ path: ['roles', name], ofField: true, message: problem });
    const permissions = reader.parsedList(value[name], ['roles', name], (items) => parsePermissions(items, catalog));
    reader.refuseEmpty(value[name], ['roles', name], `The role "${name}" needs at least one permission.`);
    return problem === undefined ? [[name, permissions]] : [];
  });
  return Object.fromEntries(roles);
}

/** Reads what is demanded of keys. @param catalog with all resources and roles */
export function readPolicySection(reader: ConfigReader, value: unknown, catalog: Catalog): PolicyRules {
  const section = reader.section(value, 'policy', POLICY_RULES);
  if (!section) return DEFAULT_CONFIG.policy;
  const { maxLifetime, requireExpiry, grantableByKeys, maxKeysPerCreator, disableUnused } = section;
  const requires = reader.isTrue(requireExpiry, ['policy', 'requireExpiry']);
  if (maxKeysPerCreator !== undefined && typeof maxKeysPerCreator !== 'number')
    reader.report(['policy', 'maxKeysPerCreator'], 'The field "maxKeysPerCreator" must be a number.');
  const rules: PolicyRules = withoutUndefined({
    maxLifetime: reader.optionalText(maxLifetime, ['policy', 'maxLifetime']),
    requireExpiry: requires,
    grantableByKeys:
      grantableByKeys === undefined
        ? undefined
        : reader.parsedList(grantableByKeys, ['policy', 'grantableByKeys'], (items) => parseGrants(items, catalog)),
    maxKeysPerCreator: typeof maxKeysPerCreator === 'number' ? maxKeysPerCreator : undefined,
    disableUnused: reader.optionalText(disableUnused, ['policy', 'disableUnused']),
  });
  for (const { rule, message } of readPolicy(rules).issues) reader.report(['policy', rule], message);
  return rules;
}

function parseGrants(items: readonly string[], catalog: Catalog) {
  const parsed = items.map((item) =>
    item.includes(':') ? parsePermissions([item], catalog) : parseRoles([item], catalog),
  );
  const values = new Set(parsed.flatMap(({ values: [grant] }) => grant ?? []));
  return { values: [...values], issues: parsed.flatMap(({ issues }) => issues) };
}

export const LIMITS_FIELDS = ['default', 'failedCredentials'] as const;

/** Reads the limits of keys that have none of their own, and of failed credentials. */
export function readLimits(reader: ConfigReader, value: unknown): Config['limits'] {
  const section = reader.section(
    value,
    'limits',
    LIMITS_FIELDS,
    'a map with the fields "default" and "failedCredentials"',
  );
  if (!section) return DEFAULT_CONFIG.limits;
  const { default: all, failedCredentials: failed } = section;
  return {
    default: reader.parsedList(all, ['limits', 'default'], parseRates),
    failedCredentials:
      failed === undefined
        ? DEFAULT_CONFIG.limits.failedCredentials
        : readLimit(reader, failed, ['limits', 'failedCredentials']),
  };
}

function readLimit(reader: ConfigReader, value: unknown, path: DocumentPath): Limit | '' {
  const text = reader.text(value, path);
  const { values, issues } = parseRates(text === undefined ? [] : [text]);
  for (const { message } of issues) reader.report(path, message);
  return values[0] ?? '';
}

export const ROUTE_FIELDS = [
  'host',
  'path',
  'methods',
  'allow',
  'resource',
  'mcp',
  'limit',
  'cost',
  'to',
  'cross-site',
  'preflight',
  'observe',
] as const;
const ALLOW_FORMS =
  'Write a permission, a list of permissions that are all required, { any: [...] }, key for any valid key, or open.';

/**
 * Reads what requests require, and what is expected of that. Routes that contradict one another are issues.
 * @param catalog with all resources
 * @returns also the expectations that do not hold
 */
export function readRoutes(
  reader: ConfigReader,
  { routes: value, expect, upstreams }: { routes?: unknown; expect?: unknown; upstreams?: unknown },
  catalog: Catalog,
): Pick<Config, 'routes' | 'expect'> & { unmet: readonly DocumentIssue[] } {
  const issuesBefore = reader.issues.length;
  const names = isRecord(upstreams) ? Object.keys(upstreams) : [];
  const swapping = new Set(names.filter((name) => sendsCredentials((upstreams as Record<string, unknown>)[name])));
  const place: RoutePlace = { catalog, upstreams: names, swapping };
  const routes = reader
    .list(value, ['routes'])
    .flatMap((item, index) => readRoute(reader, item, ['routes', index], place) ?? []);
  const areRead = reader.issues.length === issuesBefore;
  const expectations = readExpectations(reader, expect, catalog);
  const unmet: DocumentIssue[] = [];
  const read = { routes, expect: expectations.map(({ expectation }) => expectation.text), unmet };
  if (!areRead) return read;
  for (const { indexes, message } of findRouteIssues(routes)) {
    const [first, second] = indexes;
    reader.issues.push({ path: ['routes', second], message, related: ['routes', first] });
  }
  const router = createRouter(routes);
  for (const { index, expectation } of expectations) {
    const failure = failureOf(expectation, router);
    if (failure !== undefined) unmet.push({ path: ['expect', index], message: failure });
  }
  return read;
}

function readExpectations(
  reader: ConfigReader,
  value: unknown,
  catalog: Catalog,
): { index: number; expectation: Expectation }[] {
  return reader.list(value, ['expect']).flatMap((item, index) => {
    const text = reader.text(item, ['expect', index]);
    if (text === undefined) return [];
    const parsed = parseExpectation(text, catalog);
    if ('value' in parsed) return [{ index, expectation: parsed.value }];
    for (const issue of parsed.refusal) reader.report(['expect', index], issue);
    return [];
  });
}

interface RoutePlace {
  catalog: Catalog;
  /** The names of upstreams. */
  upstreams: readonly string[];
  /** Those that get credentials in the place of the caller's key. */
  swapping: ReadonlySet<string>;
}

function sendsCredentials(upstream: unknown): boolean {
  return isRecord(upstream) && ['send', 'query', 'basic'].some((field) => upstream[field] !== undefined);
}

function readRoute(
  reader: ConfigReader,
  item: unknown,
  path: DocumentPath,
  { catalog, upstreams, swapping }: RoutePlace,
): Route | undefined {
  if (!isRecord(item)) return reader.report(path, 'A route must be a map with the fields "host", "path" and "allow".');
  const fields = reader.knownFields(item, path, ROUTE_FIELDS);
  const at = (field: (typeof ROUTE_FIELDS)[number]) => [...path, field];
  const host = readPattern(reader, fields.host, at('host'), parseHostPattern);
  const pattern = readPattern(reader, fields.path, at('path'), parsePathPattern);
  const methods = fields.methods === undefined ? undefined : readMethods(reader, fields.methods, at('methods'));
  const allow =
    fields.resource === undefined
      ? readAllow(reader, fields.allow, at('allow'), catalog)
      : readResourceOf(reader, fields.resource, at('resource'), catalog);
  if (fields.resource !== undefined && fields.allow !== undefined)
    reader.report(at('resource'), 'The fields "allow" and "resource" are both there. Keep one of them.');
  const crossSiteAllowed = reader.isOnly(fields['cross-site'], at('cross-site'), 'allowed');
  const preflightOpen = reader.isOnly(fields.preflight, at('preflight'), 'open');
  const mcp = fields.mcp === undefined ? undefined : readMcp(reader, fields.mcp, at('mcp'));
  if (mcp && (allow?.kind === 'open' || allow?.kind === 'resource'))
    reader.report(at('mcp'), 'With "mcp", the field "allow" must be a permission, permissions, or key.');
  if (mcp && methods) reader.report(at('methods'), 'With "mcp", leave out "methods": all of MCP goes by one path.');
  const limit = fields.limit === undefined ? undefined : readLimit(reader, fields.limit, at('limit')) || undefined;
  const cost = fields.cost === undefined ? undefined : reader.count(fields.cost, at('cost'), MAX_COST);
  for (const field of ['limit', 'cost'] as const)
    if (item[field] !== undefined && allow?.kind === 'open')
      reader.report(at(field), `The field "${field}" is for keys, and this route needs none. Leave it out.`);
  if (limit !== undefined && cost !== undefined && cost > splitLimit(limit).count)
    reader.report(at('cost'), `A request that counts as ${cost} is never within ${limit}.`);
  const to = reader.optionalText(fields.to, at('to'));
  if (to !== undefined && !upstreams.includes(to)) {
    const known =
      upstreams.length > 0 ? `The upstreams are ${formatList(upstreams)}.` : 'There is no field "upstreams".';
    reader.report(at('to'), `${suggestion(to, upstreams)}There is no upstream "${printable(to)}". ${known}`);
  }
  const observe = reader.isOnly(fields.observe, at('observe'), true);
  const problem = observe ? problemOfObserving({ allow, mcp, to }, swapping) : undefined;
  if (problem !== undefined) reader.report(at('observe'), problem);
  if (host === undefined || pattern === undefined || !allow) return undefined;
  return {
    host,
    path: pattern,
    ...(methods && { methods }),
    allow,
    ...(to !== undefined && { to }),
    ...(mcp && { mcp }),
    ...(limit !== undefined && { limit }),
    ...(cost !== undefined && { cost }),
    ...(crossSiteAllowed && { crossSiteAllowed }),
    preflightOpen,
    ...(observe && { observe }),
  };
}

/** Why a route cannot let pass what it would refuse. */
function problemOfObserving(
  { allow, mcp, to }: Partial<Pick<Route, 'allow' | 'mcp' | 'to'>>,
  swapping: ReadonlySet<string>,
): string | undefined {
  if (allow?.kind === 'open') return 'An open route refuses nothing that could be observed. Leave "observe" out.';
  if (mcp) return 'With "mcp", leave out "observe": single tools are not observed.';
  if (to === undefined || !swapping.has(to)) return undefined;
  return `With "observe", everybody would act with the credentials that "${to}" gets. Leave it out.`;
}

/** The most that one request can count as. */
export const MAX_COST = 1_000_000;

export const MCP_FIELDS = ['tools', 'resources', 'prompts'] as const;

/** Reads what may be used of an MCP server. */
function readMcp(reader: ConfigReader, value: unknown, path: DocumentPath): McpPatterns | undefined {
  const form = 'The field "mcp" must be a map with at least one of "tools", "resources" and "prompts".';
  if (!isRecord(value)) return reader.report(path, form);
  const fields = reader.knownFields(value, path, MCP_FIELDS);
  if (Object.keys(value).length === 0) return reader.report(path, form);
  const [tools, resources, prompts] = MCP_FIELDS.map((field) => {
    const at = [...path, field];
    reader.refuseEmpty(fields[field], at, `The list "${field}" is empty. Leave it out if none may be used.`);
    return reader.textsOf(fields[field], at, (text, where) =>
      text.trim() === '' ? reader.report(where, 'An item of this list is empty. Write a name, or "*" for all.') : text,
    );
  });
  return { tools: tools!, resources: resources!, prompts: prompts! };
}

function readResourceOf(reader: ConfigReader, value: unknown, path: DocumentPath, catalog: Catalog): Allow | undefined {
  const text = reader.text(value, path);
  const parsed = text === undefined ? undefined : parseResource(text, catalog);
  if (parsed && 'refusal' in parsed) reader.report(path, parsed.refusal);
  return parsed && 'value' in parsed ? { kind: 'resource', resource: parsed.value } : undefined;
}

function readPattern(
  reader: ConfigReader,
  value: unknown,
  path: DocumentPath,
  parse: (text: string) => Pattern,
): string | undefined {
  const text = reader.requiredText(value, path, path.at(-1) === 'host' ? ' Write "*" for every host.' : '');
  const pattern = text === undefined ? undefined : parse(text);
  if (pattern && 'refusal' in pattern) reader.report(path, pattern.refusal);
  return pattern && 'value' in pattern ? pattern.value : undefined;
}

function readMethods(reader: ConfigReader, value: unknown, path: DocumentPath): string[] {
  const nothing = 'The list "methods" is empty, so that nothing matches. Leave it out for all methods.';
  reader.refuseEmpty(value, path, nothing);
  return reader.textsOf(value, path, (text, at) => {
    const method = parseMethod(text);
    return 'value' in method ? method.value : reader.report(at, method.refusal);
  });
}

function readAllow(reader: ConfigReader, value: unknown, path: DocumentPath, catalog: Catalog): Allow | undefined {
  if (value === undefined) return reader.missing(path.slice(0, -1), 'allow');
  if (value === 'open' || value === 'key') return { kind: value };
  const isAny = isRecord(value) && Object.keys(value).join() === 'any';
  if (!isAny && typeof value !== 'string' && !Array.isArray(value))
    return reader.report(path, `The field "allow" says nothing that is known. ${ALLOW_FORMS}`);
  const permissions = isAny
    ? readPermissions(reader, value['any'], [...path, 'any'], catalog)
    : readPermissions(reader, typeof value === 'string' ? [value] : value, path, catalog);
  const [first, ...others] = permissions;
  return first && { kind: isAny ? 'any' : 'all', permissions: [first, ...others] };
}

function readPermissions(reader: ConfigReader, value: unknown, path: DocumentPath, catalog: Catalog): Permission[] {
  reader.refuseEmpty(value, path, `The field "${path.at(-1)}" has no permission. ${ALLOW_FORMS}`);
  return reader.parsedList(value, path, (items) => parsePermissions(items, catalog));
}
