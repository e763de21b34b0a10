import { formatList, isRecord, printable } from '../../keys/basics/index.ts';
import type { Person } from '../people/people.ts';
import { FEDERATION } from '../people/refuse.ts';
import type { Grants } from '../../keys/repository/index.ts';
import { OWN_CLIENT } from '../consent/clients.ts';
import type { TokenIssuer } from './token-issuer.ts';

/** A claim that a token must have, with one of some values. */
export interface ClaimCondition {
  /** Its name, behind those of the claims that it is in. */
  readonly path: readonly string[];
  readonly values: readonly string[];
}

/** Which tokens are exchanged for what. */
export interface FederationRule {
  /** Also the name of the parent of the keys it issues. */
  readonly name: string;
  readonly issuer: TokenIssuer;
  /** Claims that a token must have, all of them. */
  readonly when: readonly ClaimCondition[];
  readonly grants: Grants;
  /** Lifetime of issued keys, in seconds. */
  readonly ttl: number;
  /** A token can be used more than once. */
  readonly reuse: boolean;
}

/** The claims of a token (RFC 7519, section 4). */
export type Claims = Readonly<Record<string, unknown>>;

/** Checks whether a token meets all conditions of a rule. */
export function meets(rule: Pick<FederationRule, 'when'>, claims: Claims, clientId?: string): boolean {
  return lacksOf(rule, claims, clientId).length === 0;
}

/** The `sub` of GitHub's tokens with the ids of owner and repository. */
const WITH_IDS = /^repo:[^/@]+@\d+\/[^/@]+@\d+:/;

/**
 * The claims that a rule demands and a token lacks, as sentences without a full stop. A token that was issued to another
 * client is not a workload's, unless the rule names that client.
 */
export function lacksOf(
  { when }: Pick<FederationRule, 'when'>,
  claims: Claims,
  clientId: string = OWN_CLIENT.id,
): string[] {
  const { client_id: issuedTo = clientId } = claims;
  const isNamed = when.some(({ path }) => path.length === 1 && path[0] === 'client_id');
  const foreign =
    issuedTo === clientId || isNamed
      ? []
      : [`client_id is "${printable(String(issuedTo))}", and the rule does not name it under "when"`];
  const lacking = when.flatMap(({ path, values }) => {
    const given = claimAt(claims, path);
    if (given !== undefined && values.includes(given)) return [];
    const name = printable(path.join('.'));
    const demanded = formatList(
      values.map((value) => `"${printable(value)}"`),
      'or',
    );
    return [
      given === undefined
        ? `no ${name}, which must be ${demanded}`
        : `${name} is "${printable(given)}", not ${demanded}${name === 'sub' && WITH_IDS.test(given) ? SUBJECT_NOTE : ''}`,
    ];
  });
  return [...lacking, ...foreign];
}

const SUBJECT_NOTE =
  ' (GitHub appends ids to "sub" since 2026-07-15: name repository_id or repository_owner_id instead)';

/** A claim as text; undefined if there is none, or it is not text, number or truth value. */
function claimAt(claims: Claims, path: readonly string[]): string | undefined {
  let value: unknown = claims;
  for (const name of path) value = isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  return ['string', 'number', 'boolean'].includes(typeof value) ? String(value) : undefined;
}

/** The person that the key of a rule stands for. */
export function personOf({ name }: Pick<FederationRule, 'name'>): Person {
  return { issuer: FEDERATION, subject: name, name };
}
