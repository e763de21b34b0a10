/** What the rules ask of a store, and what it keeps beside keys and their log. */
export {
  type Approver,
  CODE_MS,
  type ConsentApproval,
  type ConsentFinder,
  type ConsentFlow,
  consentFlows,
  type ConsentRedirect,
  type ConsentRequest,
  CONSENTS,
  type ConsentStatus,
  type ConsentWriter,
  decided,
  type Grants,
  KEPT_MS,
  KEPT_USED_MS,
  MAX_NETWORK_REQUESTS,
  MAX_NOTED_REQUESTS,
  MAX_REQUESTS,
  type Refresh,
  refuseOver,
  REQUEST_MS,
  requestEntry,
  requireFlow,
} from './consent-request.ts';
export * from './feed.ts';
export * from './repository.ts';
