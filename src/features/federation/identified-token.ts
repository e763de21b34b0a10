import { hash } from 'node:crypto';
import type { FederationRule } from './federation-rule.ts';

/** A token that was verified, and the rule that it meets. */
export interface IdentifiedToken {
  readonly rule: FederationRule;
  readonly subject: string;
  /** Its `jti`; null if it has none. */
  readonly id: string | null;
  /** The digest that is remembered, so that the token is used once. */
  readonly digest: string;
  /** From when on no clock takes it for valid, in milliseconds since 1970. */
  readonly endsAt: number;
}

/** Identifies the holder of a token. */
export interface TokenIdentifier {
  /**
   * @param clientId the application that has it
   * @throws TokenRefused
   */
  identify(token: string, clientId: string): Promise<IdentifiedToken>;
}

/** A refused token. The message is for its holder, and reveals nothing about the rules. */
export class TokenRefused extends Error {
  /** The reason: an unknown issuer, an issuer that does not answer, or a problem of the token itself. */
  readonly reason: 'issuer' | 'unavailable' | 'token';

  constructor(message: string, reason: TokenRefused['reason'] = 'token', options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

/** Digests a token by its id, or otherwise by the signed part: the signature can differ for the same content. */
export function digestToken(issuer: string, id: string | null, token: string): string {
  const named = id === null ? token.slice(0, token.lastIndexOf('.')) : id;
  return hash('sha256', JSON.stringify([issuer, id === null ? 'token' : 'jti', named]), 'base64url');
}
