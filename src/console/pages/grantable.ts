import { chainExpiry, chainHolds } from '../../keys/authorization/chain.ts';
import { ROLE_MEANINGS } from '../../keys/permissions/built-in.ts';
import { includesRole } from '../../keys/permissions/catalog.ts';
import type { Grantable, GrantableRole } from '../parts/grants.ts';
import type { Visit } from '../visit.tsx';

const QUERY = `{ permissions { roles { role description permissions { resource actions } } } }`;

/**
 * What a key may grant: what it may do itself, and the roles that it and all keys above it hold. Which roles there are
 * beside its own, and what they include, is asked only if it may know.
 * @throws OperationFailed
 */
export async function askGrantable(visit: Visit): Promise<Grantable> {
  const { access, chain } = visit.principal;
  const roles = visit.may('PERMISSION:READ_ANY')
    ? (await visit.ask<{ permissions: { roles: GrantableRole[] } }>(QUERY)).permissions.roles
    : rolesOf(visit);
  const holds = ({ role }: GrantableRole) => chainHolds(chain, role, { includes: includesRole });
  return { permissions: access.byResource(), roles: roles.filter(holds) };
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
