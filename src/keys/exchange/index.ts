/** Keys for something else that proves who asks: another key, or the token of an issuer that is trusted. */
export { Exchange, MAX_EXCHANGED_SECONDS, type WantedKey } from './exchange.ts';
export {
  type ClaimCondition,
  type Claims,
  digestToken,
  type FederationRule,
  type IdentifiedToken,
  lacksOf,
  meets,
  personOf,
  type TokenIdentifier,
  type TokenIssuer,
  TokenRefused,
  USED_TOKENS,
} from './federation.ts';
export { readKeySet } from './key-set.ts';
