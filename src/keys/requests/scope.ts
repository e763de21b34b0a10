import type { Issue } from '../errors.ts';
import type { Catalog } from '../permissions/catalog.ts';
import { parsePermissions, parseRoles } from '../permissions/grants.ts';
import type { Grants } from './consent-request.ts';

const ROLE = /^role:/i;

/**
 * Parses a scope (RFC 6749, section 3.3): `RESOURCE:ACTION` and `role:ROLE`, with spaces between them, in either case.
 * @returns the grants, each once, and what is wrong with the others
 */
export function parseScope(scope: string, catalog: Catalog): { grants: Grants; issues: Issue[] } {
  const items = scope.split(' ').filter((item) => item !== '');
  const roles = parseRoles(
    items.filter((item) => ROLE.test(item)).map((item) => item.replace(ROLE, '')),
    catalog,
  );
  const permissions = parsePermissions(
    items.filter((item) => !ROLE.test(item)),
    catalog,
  );
  const issues = [...roles.issues, ...permissions.issues];
  if (items.length === 0)
    issues.push({ code: 'NO_GRANTS', message: 'The scope is empty: it needs RESOURCE:ACTION or role:ROLE.' });
  return { grants: { roles: roles.values, permissions: permissions.values }, issues };
}

/** Grants as the items of a scope, roles first. */
export function scopeItems({ roles, permissions }: { [List in keyof Grants]: readonly string[] }): string[] {
  return [...roles.map((role) => `role:${role}`), ...permissions];
}

/** Grants as a scope. */
export function formatScope(grants: Readonly<Grants>): string {
  return scopeItems(grants).join(' ');
}
