import type { Issue } from '../errors.ts';
import type { Catalog, Permission, Role } from '../permissions/catalog.ts';
import { parsePermissions, parseRoles } from '../permissions/grants.ts';
import type { Grants } from './consent-request.ts';

const ROLE = /^role:/i;

/**
 * Parses a scope (RFC 6749, section 3.3): `RESOURCE:ACTION` and `role:ROLE`, with spaces between them, in either case.
 * Anybody may send one: each item is looked at once, and only the first that is wrong is explained.
 * @returns the grants, each once, or what is wrong
 */
export function parseScope(scope: string, catalog: Catalog): { grants: Grants } | { issue: Issue } {
  const roles = new Set<Role>();
  const permissions = new Set<Permission>();
  const items = new Set(scope.split(' ').filter((item) => item !== ''));
  for (const item of items) {
    const role = item.replace(ROLE, '');
    const { values, issues } = role === item ? parsePermissions([item], catalog) : parseRoles([role], catalog);
    if (issues[0]) return { issue: issues[0] };
    if (role === item) permissions.add(values[0] as Permission);
    else roles.add(values[0]!);
  }
  if (items.size > 0) return { grants: { roles: [...roles], permissions: [...permissions] } };
  return { issue: { code: 'NO_GRANTS', message: 'The scope is empty: it needs RESOURCE:ACTION or role:ROLE.' } };
}

/** Grants as the items of a scope, roles first. */
export function scopeItems({ roles, permissions }: { [List in keyof Grants]: readonly string[] }): string[] {
  return [...roles.map((role) => `role:${role}`), ...permissions];
}

/** Grants as a scope. */
export function formatScope(grants: Readonly<Grants>): string {
  return scopeItems(grants).join(' ');
}
