import type { Issue } from '../../keys/basics/index.ts';
import {
  type Catalog,
  createCatalog,
  parsePermissions,
  parseRoles,
  type Permission,
  type Role,
} from '../../keys/permissions/index.ts';
import type { Grants } from '../../keys/repository/index.ts';

const ROLE = /^role:/i;
/** The id of a key. */
const REPLACED = /^key:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

/** The built-in names are not secret. Only its keys learn the names that an installation declares. */
const BUILT_IN = createCatalog();
/** In characters: a longer item is not a name of anything. */
const MAX_EXPLAINED = 200;

interface ParsedScope {
  readonly grants: Grants;
  /** The id of a key of the application whose place is to be taken. */
  readonly replaces?: string;
}

/**
 * Parses a scope (RFC 6749, section 3.3): `RESOURCE:ACTION` and `role:ROLE`, separated by spaces, in either case.
 * Anyone can send one, so each item is looked up once, and only the first invalid one is explained, by built-in names.
 * A scope can also name a key of the application to replace: see `replacing`.
 * @returns the grants, each once, or the problem
 */
export function parseScope(scope: string, catalog: Catalog): ParsedScope | { issue: Issue } {
  const roles = new Set<Role>();
  const permissions = new Set<Permission>();
  let replaces: string | undefined;
  for (const item of scope.split(' ')) {
    if (item === '') continue;
    const replaced = REPLACED.exec(item)?.[1];
    if (replaced !== undefined) {
      replaces = replaced;
      continue;
    }
    const name = item.replace(ROLE, '');
    const grant = name.toUpperCase();
    const isRole = name !== item;
    if (isRole === grant.includes(':') || !catalog.knows(grant)) return { issue: explained(name, isRole) };
    if (isRole) roles.add(grant);
    else permissions.add(grant as Permission);
  }
  if (roles.size + permissions.size > 0)
    return { grants: { roles: [...roles], permissions: [...permissions] }, ...(replaces && { replaces }) };
  return { issue: { code: 'NO_GRANTS', message: 'The scope is empty: it needs RESOURCE:ACTION or role:ROLE.' } };
}

function explained(name: string, isRole: boolean): Issue {
  const item = name.slice(0, MAX_EXPLAINED);
  const [issue] = (isRole ? parseRoles([item], BUILT_IN) : parsePermissions([item], BUILT_IN)).issues;
  return issue!;
}
