import { type DocumentIssue, type DocumentPath, type DocumentReader, isRecord } from '../keys/document.ts';
import type { Catalog, Permission } from '../keys/permissions/catalog.ts';
import { parsePermissions } from '../keys/permissions/grants.ts';
import { type Expectation, failureOf, parseExpectation } from '../routes/expectation.ts';
import { findFaults } from '../routes/faults.ts';
import { parseHostPattern, parseMethod, parsePathPattern, type Pattern } from '../routes/pattern.ts';
import type { Config } from './config.ts';
import type { Allow, Route } from '../routes/route-tree.ts';
import { createRouter } from '../routes/router.ts';

/** The fields of a route. */
export const ROUTE_FIELDS = ['host', 'path', 'methods', 'allow', 'preflight'] as const;
const ALLOW_FORMS =
  'Write a permission, a list of permissions that are all required, { any: [...] }, key for any valid key, or open.';

/**
 * Reads what requests require, and what is expected of that. Routes that contradict one another are issues.
 * @param catalog with all resources
 * @returns also the expectations that do not hold
 */
export function readRoutes(
  reader: DocumentReader,
  { routes: value, expect }: { routes?: unknown; expect?: unknown },
  catalog: Catalog,
): Pick<Config, 'routes' | 'expect'> & { unmet: readonly DocumentIssue[] } {
  const issuesBefore = reader.issues.length;
  const routes = reader
    .list(value, ['routes'])
    .flatMap((item, index) => readRoute(reader, item, ['routes', index], catalog) ?? []);
  const areRead = reader.issues.length === issuesBefore;
  const expectations = readExpectations(reader, expect, catalog);
  const unmet: DocumentIssue[] = [];
  const read = { routes, expect: expectations.map(({ expectation }) => expectation.text), unmet };
  if (!areRead) return read;
  for (const { indexes, message } of findFaults(routes)) {
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
  reader: DocumentReader,
  value: unknown,
  catalog: Catalog,
): { index: number; expectation: Expectation }[] {
  return reader.list(value, ['expect']).flatMap((item, index) => {
    const text = reader.text(item, ['expect', index]);
    if (text === undefined) return [];
    const parsed = parseExpectation(text, catalog);
    if ('value' in parsed) return [{ index, expectation: parsed.value }];
    for (const fault of parsed.refusal) reader.report(['expect', index], fault);
    return [];
  });
}

function readRoute(reader: DocumentReader, item: unknown, path: DocumentPath, catalog: Catalog): Route | undefined {
  if (!isRecord(item)) {
    reader.report(path, 'A route must be a map with the fields "host", "path" and "allow".');
    return undefined;
  }
  const {
    host: givenHost,
    path: givenPath,
    methods: listed,
    allow: given,
    preflight,
  } = reader.knownFields(item, path, ROUTE_FIELDS);
  const host = readPattern(reader, givenHost, [...path, 'host'], parseHostPattern);
  const pattern = readPattern(reader, givenPath, [...path, 'path'], parsePathPattern);
  const methods = listed === undefined ? undefined : readMethods(reader, listed, [...path, 'methods']);
  const allow = readAllow(reader, given, [...path, 'allow'], catalog);
  if (preflight !== undefined && preflight !== 'open')
    reader.report([...path, 'preflight'], 'The field "preflight" must be open, or left out.');
  if (host === undefined || pattern === undefined || !allow) return undefined;
  return { host, path: pattern, ...(methods && { methods }), allow, preflightOpen: preflight === 'open' };
}

function readPattern(
  reader: DocumentReader,
  value: unknown,
  path: DocumentPath,
  parse: (text: string) => Pattern,
): string | undefined {
  if (value === undefined) return missing(reader, path);
  const text = reader.text(value, path);
  const pattern = text === undefined ? undefined : parse(text);
  if (pattern && 'refusal' in pattern) reader.report(path, pattern.refusal);
  return pattern && 'value' in pattern ? pattern.value : undefined;
}

function readMethods(reader: DocumentReader, value: unknown, path: DocumentPath): string[] {
  if (Array.isArray(value) && value.length === 0)
    reader.report(path, 'The list "methods" is empty, so that nothing matches. Leave it out for all methods.');
  return reader.parsedList(value, path, ([text = '']) => {
    const method = parseMethod(text);
    return 'value' in method
      ? { values: [method.value], issues: [] }
      : { values: [], issues: [{ message: method.refusal }] };
  });
}

function readAllow(reader: DocumentReader, value: unknown, path: DocumentPath, catalog: Catalog): Allow | undefined {
  if (value === undefined) return missing(reader, path);
  if (value === 'open' || value === 'key') return { kind: value };
  const isAny = isRecord(value) && Object.keys(value).join() === 'any';
  if (!isAny && typeof value !== 'string' && !Array.isArray(value)) {
    reader.report(path, `The field "allow" says nothing that is known. ${ALLOW_FORMS}`);
    return undefined;
  }
  const permissions = isAny
    ? readPermissions(reader, value['any'], [...path, 'any'], catalog)
    : readPermissions(reader, typeof value === 'string' ? [value] : value, path, catalog);
  const [first, ...others] = permissions;
  return first && { kind: isAny ? 'any' : 'all', permissions: [first, ...others] };
}

function readPermissions(reader: DocumentReader, value: unknown, path: DocumentPath, catalog: Catalog): Permission[] {
  if (Array.isArray(value) && value.length === 0)
    reader.report(path, `The field "${path.at(-1)}" has no permission. ${ALLOW_FORMS}`);
  return reader.parsedList(value, path, (items) => parsePermissions(items, catalog));
}

function missing(reader: DocumentReader, path: DocumentPath): undefined {
  const field = String(path.at(-1));
  return reader.missing(path.slice(0, -1), field, field === 'host' ? ' Write "*" for every host.' : '');
}
