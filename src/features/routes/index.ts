/** Routes: canonical requests, the route that decides, and problems of routes. */
export {
  allowOf,
  checkAllow,
  describeAllow,
  describeExplanation,
  describeMatch,
  describePattern,
  type Explanation,
  goesByMethod,
  isReading,
  neededBy,
  requirementOf,
} from './decide.ts';
export {
  type Allow,
  chargeOf,
  createRouter,
  findUnreachable,
  type Match,
  type McpPatterns,
  mostOfCharges,
  type Needed,
  type Route,
  type Router,
  sumOfCharges,
} from './router.ts';
export { findWideRoutes, type WideRoute } from './route-issues.ts';
export { canonicalHost, canonicalSite, parseHostPattern, preflightParts, type RequestParts } from './request.ts';
export * from './upstream.ts';
