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

/** Finds out what a token proves. */
export interface TokenIdentifier {
  /**
   * @param clientId the application that has it
   * @throws TokenRefused
   */
  identify(token: string, clientId: string): Promise<IdentifiedToken>;
}

/** A token is not accepted. The message is for its holder, and tells nothing of the rules. */
export class TokenRefused extends Error {
  /** Why: its issuer is another one, does not answer at present, or something is wrong with the token itself. */
  readonly reason: 'issuer' | 'unavailable' | 'token';

  constructor(message: string, reason: TokenRefused['reason'] = 'token', options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

/** Digests a token by its issuer's name for it, or by what is signed: signatures can be written anew. */
export function digestToken(issuer: string, id: string | null, token: string): string {
  const named = id === null ? token.slice(0, token.lastIndexOf('.')) : id;
  return hash('sha256', JSON.stringify([issuer, id === null ? 'token' : 'jti', named]), 'base64url');
}
