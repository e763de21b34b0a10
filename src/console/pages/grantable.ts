import { chainExpiry } from '../../keys/authorization/chain.ts';
import { ROLE_MEANINGS } from '../../keys/permissions/built-in.ts';
import type { ExpiryBounds } from '../parts/field.tsx';
import type { Grantable, GrantableRole } from '../parts/grants.ts';
import { inYourWords } from '../parts/notice.tsx';
import type { Visit } from '../visit.tsx';

const FIELDS = `{
  reason withheld creatable
  roles { role description permissions { resource actions } } permissions { resource actions }
  ends { reason latest required }
}`;
const NEW = `{ grantable ${FIELDS} }`;
const TO = `query Grantable($id: ID!) { apiKey(id: $id) { grantable ${FIELDS} } }`;
const ROLES = '{ permissions { roles { role description permissions { resource actions } } } }';

/** What is said to those who may create no more keys, by the policy. */
export const NO_MORE_KEYS =
  'By the policy of this service, your key may have no more live keys than it has created. ' +
  'Delete or disable one first.';

/** What somebody may give to a key, as GraphQL tells of it beforehand: see `Grantable` of the schema. */
export interface AskedGrantable extends Grantable {
  /** Why they may grant nothing; null if they may. */
  readonly reason: string | null;
  /** How many more live keys they may create; null for any number. */
  readonly creatable: number | null;
  readonly ends: {
    /** Why the end cannot be set; null if it can. */
    readonly reason: string | null;
    /** In RFC 3339. */
    readonly latest: string | null;
    readonly required: boolean;
  };
}

/** What somebody may give to a key that they create. @throws OperationFailed */
export async function askGrantable(visit: Visit): Promise<AskedGrantable> {
  return said((await visit.ask<{ grantable: AskedGrantable }>(NEW)).grantable);
}

/** What somebody may give to a key, beside what it has. @throws OperationFailed, also where it is gone */
export async function askGrantableTo(visit: Visit, id: string): Promise<AskedGrantable | undefined> {
  const { apiKey } = await visit.ask<{ apiKey: { grantable: AskedGrantable } | null }>(TO, { id });
  return apiKey ? said(apiKey.grantable) : undefined;
}

function said({ reason, ends, ...granted }: AskedGrantable): AskedGrantable {
  return {
    ...granted,
    reason: reason && inYourWords(reason),
    ends: { ...ends, reason: ends.reason && inYourWords(ends.reason) },
  };
}

/** Between now and which time the end of a new key lies. */
export function boundsOf({ now, principal }: Visit, { ends: { latest, required } }: AskedGrantable): ExpiryBounds {
  const end = latest === null ? null : Date.parse(latest);
  return { now, end, required, isOwnEnd: end !== null && end === chainExpiry(principal.chain) };
}

/**
 * The roles that there are, as far as a key may know: without PERMISSION:READ_ANY, those that are built in, and its
 * own.
 * @throws OperationFailed
 */
export async function askRoles(visit: Visit): Promise<readonly GrantableRole[]> {
  if (!visit.may('PERMISSION:READ_ANY')) return rolesOf(visit);
  return (await visit.ask<{ permissions: { roles: GrantableRole[] } }>(ROLES)).permissions.roles;
}

function rolesOf({ principal }: Visit): GrantableRole[] {
  const builtIn = Object.entries(ROLE_MEANINGS).map(([role, description]) => ({ role, description }));
  const own = principal.apiKey.roles.filter((role) => !(role in ROLE_MEANINGS));
  return [...builtIn, ...own.map((role) => ({ role, description: 'A role of this installation.' }))];
}
