/**
 * Execution of operations of any schema, each prepared once, within limits on documents, cost and run time. Independent
 * of keys.
 */
export {
  type Amount,
  amountFor,
  type BudgetedRequest,
  type BudgetLimits,
  Budgets,
  clientGone,
  costExceeded,
  costOf,
  keepToBudget,
  MAX_ERRORS,
  type RequestBudget,
  writeData,
} from './budget.ts';
export {
  DOCUMENT_LIMITS,
  FIELD_LIMITS,
  introspects,
  isMutation,
  MAX_EXPANDED_LEVELS,
  MAX_FRAGMENTS,
  MAX_REPEATED_PAIRS,
  operationNameIn,
  readDocument,
} from './document.ts';
export type { Eventual } from './execution.ts';
export { type PreparedOperation, PreparedOperations, RecentlyUsed } from './prepared.ts';
