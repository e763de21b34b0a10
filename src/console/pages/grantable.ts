import { chainExpiry, chainHolds } from '../../keys/authorization/chain.ts';
import { ROLE_MEANINGS } from '../../keys/permissions/built-in.ts';
import { includesRole } from '../../keys/permissions/catalog.ts';
import type { Grantable, GrantableRole } from '../parts/grants.ts';
import type { Visit } from '../visit.tsx';

const QUERY = `{ permissions { roles { role description permissions { resource actions } } } }`;

/**
 * What a key may grant: what it may do itself, and the roles that it and all keys above it hold.
 * @throws OperationFailed
 */
export async function askGrantable(visit: Visit): Promise<Grantable> {
  return grantableOf(visit, await askRoles(visit));
}

/** The same, of roles that were asked for already. */
export function grantableOf({ principal: { access, chain } }: Visit, roles: readonly GrantableRole[]): Grantable {
  const holds = ({ role }: GrantableRole) => chainHolds(chain, role, { includes: includesRole });
  return { permissions: access.byResource(), roles: roles.filter(holds) };
}

/**
 * The roles that there are, as far as a key may know: without PERMISSION:READ_ANY, those that are built in, and its
 * own.
 * @throws OperationFailed
 */
export async function askRoles(visit: Visit): Promise<readonly GrantableRole[]> {
  if (!visit.may('PERMISSION:READ_ANY')) return rolesOf(visit);
  return (await visit.ask<{ permissions: { roles: GrantableRole[] } }>(QUERY)).permissions.roles;
}

/** The latest end that a key can give another one, in milliseconds since 1970; null if it never ends itself. */
export function latestEnd({ principal }: Visit): number | null {
  return chainExpiry(principal.chain);
}

function rolesOf({ principal }: Visit): GrantableRole[] {
  const builtIn = Object.entries(ROLE_MEANINGS).map(([role, description]) => ({ role, description }));
  const own = principal.key.roles.filter((role) => !(role in ROLE_MEANINGS));
  return [...builtIn, ...own.map((role) => ({ role, description: 'A role of this installation.' }))];
}
