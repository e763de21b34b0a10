import { PERMISSION } from '../../config/patterns.ts';
import { type Issue, printable } from '../../keys/basics/index.ts';
import { type Catalog, type Grant, parsePermissions, parseRoles } from '../../keys/permissions/index.ts';

/** The form of a role in a list that can also have permissions. */
const ROLE_FORM = { type: 'string', pattern: '^\\s*[Rr][Oo][Ll][Ee]:\\s*[A-Za-z][A-Za-z0-9_]{0,63}\\s*$' };
/** The form of a permission or a role. */
export const GRANT = { anyOf: [ROLE_FORM, PERMISSION] };

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
