/** How an application gets a key: asking, deciding, redeeming, revoking. */
export { type ConsentChoice, validateChosen } from './approval.ts';
export { type AskedConsent, type NewConsentRequest, Pace, POLL_SECONDS, TooManyRequestsError } from './ask.ts';
export {
  checkClients,
  type Client,
  findClient,
  formatScope,
  hasRedirect,
  invalidClient,
  OWN_CLIENT,
  parseScope,
  redirectTo,
  scopeItems,
  unusableClients,
} from './clients.ts';
export { isChallenge, readUserCode } from './codes.ts';
export {
  type ApprovedConsent,
  Consent,
  type ConsentOperations,
  type ConsentOptions,
  type ConsentPlace,
  type ConsentState,
  type Handle,
  OperatorConsents,
  type Polled,
} from './consent.ts';
export type { Ended, KeyToEnd, Redeemed, Redemption, RefusedEnd, RefusedRedemption } from './redeem.ts';
