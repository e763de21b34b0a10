/** Who may do what: principals, the parents of a key, what it may grant and read. */
export { AuditAccess } from './audit-access.ts';
export * from './chain.ts';
export {
  type AccessDecision,
  decideAccess,
  describeGrant,
  readPermission,
  splitUsed,
  suggestGrants,
  type Suggestion,
} from './explain.ts';
export * from './granting.ts';
export {
  type AccessObserver,
  type Actor,
  type AppliedLimit,
  appliedLimits,
  type Caller,
  type Charge,
  denied,
  forbidden,
  mayFor,
  NOT_YET,
  ONCE,
  OPERATOR,
  operatorName,
  Principal,
  principalOf,
  requireFor,
  requirePermission,
  type Restrictions,
  restrictionsFor,
  type RouteCharge,
  uses,
} from './principal.ts';
