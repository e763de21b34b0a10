/** Which requests need what: canonical requests, the route that decides, what is wrong with routes. */
export {
  allowOf,
  checkAllow,
  describeAllow,
  describeExplanation,
  describeMatch,
  describePattern,
  type Expectation,
  explain,
  type Explanation,
  failureOf,
  goesByMethod,
  isReading,
  neededBy,
  neededFor,
  parseExpectation,
  requirementOf,
} from './decide.ts';
export { chargeOf, mostOfCharges, sumOfCharges } from './charge.ts';
export { findRouteIssues, findWideRoutes, type WideRoute } from './route-issues.ts';
export {
  canonicalSite,
  parseHostPattern,
  parseMethod,
  parsePathPattern,
  parseRequest,
  type Pattern,
  preflightOf,
  preflightParts,
  type RequestParts,
} from './request.ts';
export {
  type Allow,
  createRouter,
  findUnreachable,
  type Match,
  type McpPatterns,
  type Needed,
  type Route,
  type Router,
} from './router.ts';
export {
  formatHost,
  parseUpstream,
  problemOfSentHeader,
  type SentCredential,
  type Upstream,
  type UpstreamAddress,
} from './upstream.ts';
