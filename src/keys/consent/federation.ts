import { createPublicKey, hash } from 'node:crypto';
import { formatList, isRecord, KeysError, printable, readPublicFile } from '../basics/index.ts';
import { FEDERATION, type Person } from '../key/index.ts';
import type { Grants } from '../repository/index.ts';
import { OWN_CLIENT } from './clients.ts';

/** Who signs tokens that say who somebody is, and how these must be. */
export interface TokenIssuer {
  /** The `iss` of its tokens; its metadata are below it (OpenID Connect Discovery 1.0, section 4). */
  readonly url: string;
  /** Where its public keys are (RFC 7517), by URL or as an absolute path; undefined where its metadata say so. */
  readonly jwks: string | { readonly file: string } | undefined;
  /** What its tokens must be for: their `aud`. */
  readonly audience: string;
  /** By what they may be signed (RFC 7518). */
  readonly algorithms: readonly string[];
  /** How long its public keys are used that could not be read again, in seconds. Default: USUAL_KEYS_MAX_AGE. */
  readonly keysMaxAge?: number;
}

/** A day, in seconds. */
export const USUAL_KEYS_MAX_AGE = 86_400;

/** A claim that a token must have, with one of some values. */
export interface ClaimCondition {
  /** Its name, behind those of the claims that it is in. */
  readonly path: readonly string[];
  readonly values: readonly string[];
}

/** Which tokens are exchanged for what. */
export interface FederationRule {
  /** Also the name of the key that what it issues descends from. */
  readonly name: string;
  readonly issuer: TokenIssuer;
  /** What a token must say: all of it. */
  readonly when: readonly ClaimCondition[];
  readonly grants: Grants;
  /** How long a key is valid that it issues, in seconds. */
  readonly ttl: number;
  /** Whether a token may be used more than once. */
  readonly reuse: boolean;
}

/** What a token says (RFC 7519, section 4). */
export type Claims = Readonly<Record<string, unknown>>;

/** A token that was verified, and the rule that it meets. */
export interface IdentifiedToken {
  readonly rule: FederationRule;
  readonly subject: string;
  /** Its `jti`; null if it has none. */
  readonly id: string | null;
  /** What is remembered of it, so that it is used once. */
  readonly digest: string;
  /** From when on no clock takes it for valid, in milliseconds since 1970. */
  readonly endsAt: number;
}

/** Finds out what a token proves. */
export interface TokenIdentifier {
  /**
   * @param clientId the application that has it
   * @throws TokenRefused
   */
  identify(token: string, clientId: string): Promise<IdentifiedToken>;
}

/** A token is not accepted. The message is for whoever has it, and tells nothing of the rules. */
export class TokenRefused extends Error {
  /** Why: its issuer is another one, does not answer at present, or something is wrong with the token itself. */
  readonly reason: 'issuer' | 'unavailable' | 'token';

  constructor(message: string, reason: TokenRefused['reason'] = 'token', options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

/** Whether a token says all that a rule demands. */
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

/** What is remembered of a token: its issuer's name for it, or what is signed: signatures can be written anew. */
export function digestToken(issuer: string, id: string | null, token: string): string {
  const named = id === null ? token.slice(0, token.lastIndexOf('.')) : id;
  return hash('sha256', JSON.stringify([issuer, id === null ? 'token' : 'jti', named]), 'base64url');
}

/** For whom the key of a rule stands. */
export function personOf({ name }: Pick<FederationRule, 'name'>): Person {
  return { issuer: FEDERATION, subject: name, name };
}

/** What only a private key has, or one that both sides have (RFC 7518, sections 6.2.2, 6.3.2 and 6.4). */
const PRIVATE = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];
/** The most keys of an issuer, and how long those of RSA are at least, in bits (RFC 7518, section 3.3). */
const [MAX_KEYS, MIN_RSA_BITS] = [100, 2048];

/** A public key in JSON (RFC 7517). The type of Node has another name in each of its versions. */
export interface PublicJwk {
  readonly kty?: string;
  readonly [member: string]: unknown;
}

/**
 * Reads the public keys of an issuer from a file (RFC 7517, section 5): all that is in it can be used.
 * @throws KeysError CONFIG_INVALID, CONFIG_UNAVAILABLE, CONFIG_INSECURE
 */
export function readKeySet(file: string): { keys: PublicJwk[] } {
  const what = 'The file of the keys of an issuer';
  const text = readPublicFile(file, { what, remedy: 'Correct "jwks".' });
  const invalid = (problem: string) =>
    new KeysError('CONFIG_INVALID', `${what}, ${printable(file, 200)}, ${problem}. Write the JSON of its JWK set.`);
  let set: unknown;
  try {
    set = JSON.parse(text);
  } catch {
    throw invalid('is not JSON');
  }
  const keys: unknown = isRecord(set) ? set['keys'] : undefined;
  if (!Array.isArray(keys)) throw invalid('has no list "keys"');
  if (keys.length === 0) throw invalid('has no key');
  if (keys.length > MAX_KEYS) throw invalid(`has ${keys.length} keys; at most ${MAX_KEYS} are allowed`);
  for (const [index, key] of keys.entries()) {
    const problem = problemOfPublicKey(key);
    if (problem !== undefined) throw invalid(`has something else than public keys: the ${index + 1}. ${problem}`);
  }
  return { keys };
}

function problemOfPublicKey(key: unknown): string | undefined {
  if (!isRecord(key)) return 'is not a key';
  if (key['kty'] === 'oct') return 'is a key that both sides have, by which everybody who reads it could sign';
  if (PRIVATE.some((member) => Object.hasOwn(key, member))) return 'is a private key, which only the issuer may have';
  try {
    const { modulusLength = MIN_RSA_BITS } = createPublicKey({ key, format: 'jwk' }).asymmetricKeyDetails!;
    return modulusLength < MIN_RSA_BITS ? `has fewer than ${MIN_RSA_BITS} bits` : undefined;
  } catch {
    return 'is not a key of RSA, EC or OKP';
  }
}
