import type { Issue } from '../errors.ts';
import { type Catalog, createCatalog, type Permission, type Role } from '../permissions/catalog.ts';
import { parsePermissions, parseRoles } from '../permissions/grants.ts';
import type { Grants } from './consent-request.ts';

const ROLE = /^role:/i;

/** What is built in is no secret. What an installation declares is told to its keys alone. */
const BUILT_IN = createCatalog();
/** In characters: a longer item is no name of anything. */
const MAX_EXPLAINED = 200;

/**
 * Parses a scope (RFC 6749, section 3.3): `RESOURCE:ACTION` and `role:ROLE`, with spaces between them, in either case.
 * Anybody may send one: each item is looked up once, and only the first that is wrong is explained, by built-in names.
 * @returns the grants, each once, or what is wrong
 */
export function parseScope(scope: string, catalog: Catalog): { grants: Grants } | { issue: Issue } {
  const roles = new Set<Role>();
  const permissions = new Set<Permission>();
  for (const item of scope.split(' ')) {
    if (item === '') continue;
    const name = item.replace(ROLE, '');
    const grant = name.toUpperCase();
    const isRole = name !== item;
    if (isRole === grant.includes(':') || !catalog.knows(grant)) return { issue: explained(name, isRole) };
    if (isRole) roles.add(grant);
    else permissions.add(grant as Permission);
  }
  if (roles.size + permissions.size > 0) return { grants: { roles: [...roles], permissions: [...permissions] } };
  return { issue: { code: 'NO_GRANTS', message: 'The scope is empty: it needs RESOURCE:ACTION or role:ROLE.' } };
}

function explained(name: string, isRole: boolean): Issue {
  const item = name.slice(0, MAX_EXPLAINED);
  const [issue] = (isRole ? parseRoles([item], BUILT_IN) : parsePermissions([item], BUILT_IN)).issues;
  return issue!;
}

/** Grants as the items of a scope, roles first. */
export function scopeItems({ roles, permissions }: { [List in keyof Grants]: readonly string[] }): string[] {
  return [...roles.map((role) => `role:${role}`), ...permissions];
}

/** Grants as a scope. */
export function formatScope(grants: Readonly<Grants>): string {
  return scopeItems(grants).join(' ');
}
