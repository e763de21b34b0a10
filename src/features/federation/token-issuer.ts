/** An issuer of identity tokens, and the form that these must have. */
export interface TokenIssuer {
  /** The `iss` of its tokens; its metadata are below it (OpenID Connect Discovery 1.0, section 4). */
  readonly url: string;
  /** The place of its public keys (RFC 7517), a URL or an absolute path; undefined where its metadata have it. */
  readonly jwks: string | { readonly file: string } | undefined;
  /** The `aud` that its tokens must have. */
  readonly audience: string;
  /** Allowed signature algorithms (RFC 7518). */
  readonly algorithms: readonly string[];
  /** Time that its public keys are used without being read again, in seconds. Default: USUAL_KEYS_MAX_AGE. */
  readonly keysMaxAge?: number;
}

/** A day, in seconds. */
export const USUAL_KEYS_MAX_AGE = 86_400;
