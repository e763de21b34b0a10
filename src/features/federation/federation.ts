import { printable } from '../../keys/basics/index.ts';
import { type Claims, type FederationRule, lacksOf, meets } from './federation-rule.ts';
import { digestToken, type IdentifiedToken, type TokenIdentifier, TokenRefused } from './identified-token.ts';
import type { TokenIssuer } from './token-issuer.ts';
import { canIdentify } from '../../keys/key/index.ts';
import type { IssuerKeys } from './issuer-keys.ts';

/** Allowed difference of an issuer's clock, in seconds. */
const CLOCK_TOLERANCE = 60;
/** Types of tokens that identify workloads. Others have a different purpose (RFC 8725, section 3.11). */
const TYPES = new Set(['jwt', 'jose', 'at+jwt']);
/** In milliseconds since 1970. */
const LATEST = 8.64e15;

/** A token, judged by each rule. */
interface JudgedToken {
  /** Its claims, which are not verified. */
  readonly claims: Claims;
  readonly rules: readonly JudgedRule[];
}

/** The problem of a token at the issuer of a rule, and the conditions it does not meet; empty if it meets the rule. */
interface JudgedRule {
  readonly rule: FederationRule;
  readonly refused: TokenRefused | undefined;
  readonly lacks: readonly string[];
}

interface FederationOptions {
  readonly rules: readonly FederationRule[];
  readonly keys: IssuerKeys;
  /** Milliseconds since 1970. */
  readonly clock: () => number;
}

/** Identifies tokens by rules. The first rule that a token meets decides. */
export class Federation implements TokenIdentifier {
  readonly #options: FederationOptions;
  /** The rules, each with a key for its issuer. */
  readonly #rules: readonly (readonly [rule: FederationRule, issuer: string])[];

  constructor(options: FederationOptions) {
    this.#options = options;
    this.#rules = options.rules.map((rule) => [rule, JSON.stringify(rule.issuer)]);
  }

  async identify(token: string, clientId?: string): Promise<IdentifiedToken> {
    const { claims, refusalOf } = await this.#read(token);
    let reason: TokenRefused | undefined;
    for (const [rule, issuer] of this.#rules) {
      const refused = await refusalOf(rule.issuer, issuer);
      if (!refused && meets(rule, claims, clientId)) return identified(rule, claims, token);
      // A problem of the token itself is more useful than a mismatched issuer.
      if (!refused) reason = new TokenRefused('The token meets no rule of this service.');
      else if (!reason || reason.reason === 'issuer') reason = refused;
    }
    throw reason!;
  }

  /**
   * Judges a token by each rule, without checking whether it was used before.
   * @throws TokenRefused if it is not a token
   */
  async judge(token: string): Promise<JudgedToken> {
    const { claims, refusalOf } = await this.#read(token);
    const rules: JudgedRule[] = [];
    for (const [rule, issuer] of this.#rules)
      rules.push({ rule, refused: await refusalOf(rule.issuer, issuer), lacks: lacksOf(rule, claims) });
    return { claims, rules };
  }

  /** Reads the claims of a token, and checks it once for each issuer. */
  async #read(token: string) {
    const { decodeJwt } = await import('./jose.ts');
    let claims: Claims;
    try {
      claims = decodeJwt(token);
    } catch {
      throw new TokenRefused('The token is not a signed JWT.');
    }
    const known = new Map<string, Promise<TokenRefused | undefined>>();
    const refusalOf = (issuer: TokenIssuer, place: string) => {
      const refusal = known.get(place) ?? this.#refusal(token, claims, issuer);
      known.set(place, refusal);
      return refusal;
    };
    return { claims, refusalOf };
  }

  /** The reason that an issuer's token is refused, if it is. */
  async #refusal(token: string, claims: Claims, issuer: TokenIssuer): Promise<TokenRefused | undefined> {
    const { url, audience, algorithms } = issuer;
    if (claims['iss'] !== url) return new TokenRefused('The issuer of the token is not trusted here.', 'issuer');
    const { keys, clock } = this.#options;
    const { jwtVerify } = await import('./jose.ts');
    const now = clock();
    const options = {
      issuer: url,
      audience,
      algorithms: [...algorithms],
      clockTolerance: CLOCK_TOLERANCE,
      currentDate: new Date(now),
      requiredClaims: ['exp', 'sub'],
    };
    try {
      const { payload, protectedHeader } = await keys.verify(issuer, (find) => jwtVerify(token, find, options));
      const { iat = 0, sub } = payload;
      const type = (protectedHeader.typ ?? 'JWT').toLowerCase().replace(/^application\//, '');
      if (!TYPES.has(type)) return new TokenRefused(`Tokens of the type "${printable(type)}" are not supported.`);
      if (iat > now / 1000 + CLOCK_TOLERANCE) return new TokenRefused(NOT_YET);
      return canIdentify(sub) ? undefined : new TokenRefused('The "sub" of the token is not a name.');
    } catch (error) {
      return error instanceof TokenRefused ? error : new TokenRefused(messageFor(error, issuer));
    }
  }
}

function identified(rule: FederationRule, claims: Claims, token: string): IdentifiedToken {
  const { iss: issuer, sub: subject, jti, exp } = claims as { iss: string; sub: string; jti?: unknown; exp: number };
  const id = canIdentify(jti) ? jti : null;
  const endsAt = Math.min(Math.ceil((exp + CLOCK_TOLERANCE) * 1000), LATEST);
  return { rule, subject, id, digest: digestToken(issuer, id, token), endsAt };
}

const NOT_YET = 'The token is not valid yet. Compare the clocks.';

/** The message for an error of jose. */
function messageFor(error: unknown, { audience, algorithms }: TokenIssuer): string {
  const { code, claim } = error as { code?: string; claim?: string };
  switch (code) {
    case 'ERR_JWT_EXPIRED':
      return 'The token has expired. Get a new one.';
    case 'ERR_JWT_CLAIM_VALIDATION_FAILED':
      if (claim === 'nbf') return NOT_YET;
      return claim === 'aud'
        ? `The token is for another service: its "aud" must be ${audience}.`
        : `The "${printable(claim ?? 'exp')}" of the token is missing or invalid.`;
    case 'ERR_JOSE_ALG_NOT_ALLOWED':
      return `The signature algorithm of the token is not allowed: use ${algorithms.join(' or ')}.`;
    case 'ERR_JWKS_NO_MATCHING_KEY':
    case 'ERR_JWKS_MULTIPLE_MATCHING_KEYS':
      return 'The issuer does not have the key that signed the token.';
    case 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED':
      return 'The signature of the token is invalid.';
    default:
      return 'The token is not a signed JWT that can be verified.';
  }
}
