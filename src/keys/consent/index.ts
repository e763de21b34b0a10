/**
 * How an application gets a key: asking, deciding, redeeming, revoking, or for something else that proves who asks,
 * such as a key or the token of an issuer that is trusted.
 */
export { type ConsentChoice, validateChosen } from './approval.ts';
export { type NewConsentRequest, Pace, POLL_SECONDS, TooManyRequestsError } from './ask.ts';
export * from './clients.ts';
export { isChallenge, readUserCode } from './codes.ts';
export * from './consent.ts';
export type { Redemption } from './redeem.ts';
export { DEFAULT_REFRESH, MAX_LEEWAY_MS, type RefreshSettings } from './refresh.ts';
export { Exchange, MAX_EXCHANGED_SECONDS, type WantedKey } from './exchange.ts';
export * from './federation.ts';
