/** The ways in which an application gets a key: asking, deciding, redeeming, refreshing and revoking. */
export { type ConsentChoice, validateChosen } from './approval.ts';
export type { NewConsentRequest } from './ask.ts';
export { POLL_SECONDS, TooManyRequestsError } from './pace.ts';
export * from './clients.ts';
export * from './redirects.ts';
export * from './scope.ts';
export { readUserCode } from './codes.ts';
export { isChallenge } from './pkce.ts';
export * from './consent.ts';
export type { Redemption } from './redeem.ts';
export { DEFAULT_REFRESH, type RefreshSettings } from './refresh.ts';
