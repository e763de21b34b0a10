/**
 * How an application gets a key: asking, deciding, redeeming, revoking, or for something else that proves who asks,
 * such as a key or the token of an issuer that is trusted.
 */
export { type ConsentChoice, validateChosen } from './approval.ts';
export type { NewConsentRequest } from './ask.ts';
export { Pace, POLL_SECONDS, TooManyRequestsError } from './pace.ts';
export * from './clients.ts';
export * from './redirects.ts';
export * from './scope.ts';
export { readUserCode } from './codes.ts';
export { isChallenge } from './pkce.ts';
export * from './consent.ts';
export type { Redemption } from './redeem.ts';
export { DEFAULT_REFRESH, MAX_LEEWAY_MS, type RefreshSettings } from './refresh.ts';
export { Exchange, MAX_EXCHANGED_SECONDS, type WantedKey } from './exchange.ts';
export * from './federation-rule.ts';
export * from './identified-token.ts';
export * from './key-set.ts';
export * from './token-issuer.ts';
