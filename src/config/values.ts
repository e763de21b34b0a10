import { type Issue, parseRates, printable } from '../keys/basics/index.ts';
import { type Catalog, type Grant, parsePermissions, parseRoles, readPeriod } from '../keys/permissions/index.ts';
import { DURATION, LIMIT, PERMISSION } from './patterns.ts';
import { parsed, text } from './schema.ts';

/** A list of permissions. @param empty the problem with an empty list, if it is not allowed */
export function permissionsOf(catalog: Catalog, empty?: string) {
  return parsed((items) => parsePermissions(items, catalog), PERMISSION, empty);
}

/** A limit of requests, such as `100/m`. */
export const limit = text((given) => {
  const { values, issues } = parseRates([given]);
  return issues.length > 0 ? { refusal: issues.map(({ message }) => message) } : { value: values[0]! };
}, LIMIT);

/** A duration in milliseconds. @param least the shortest */
export function period(least: number) {
  return text<number>((given) => {
    const read = readPeriod(given, least);
    return typeof read === 'number' ? { value: read } : { refusal: read };
  }, DURATION);
}

const ROLE = /^role:\s*/i;

/** Permissions as `RESOURCE:ACTION`, and roles as `role:VIEWER`, like scopes of OAuth. */
export function parseGrants(items: readonly string[], catalog: Catalog): { values: Grant[]; issues: Issue[] } {
  const parsed = items.map((item) => {
    const text = item.trim();
    if (ROLE.test(text)) return parseRoles([text.replace(ROLE, '')], catalog);
    const [role] = text.includes(':') ? [] : parseRoles([text], catalog).values;
    if (role === undefined) return parsePermissions([text], catalog);
    const message = `"${printable(text)}" is not a permission. For a role, write role:${role}.`;
    return { values: [], issues: [{ code: 'PERMISSION_INVALID' as const, message }] };
  });
  return {
    values: [...new Set(parsed.flatMap(({ values }): Grant[] => values))],
    issues: parsed.flatMap(({ issues }) => issues),
  };
}
