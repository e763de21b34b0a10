/** The schema, its resolvers, and the execution of operations. */
export type { BudgetedContext, CreateContext, ServiceParts } from './context.ts';
export {
  type Amount,
  amountFor,
  type BudgetLimits,
  Budgets,
  clientGone,
  costExceeded,
  costOf,
  type Eventual,
  introspects,
  isMutation,
  operationNameIn,
  type PreparedOperation,
  PreparedOperations,
  readDocument,
  RecentlyUsed,
  type RequestBudget,
  writeData,
} from './execution/index.ts';
export type { FeatureSchema } from './feature-schema.ts';
export { chainsFor, pageLoader } from './page-loader.ts';
export {
  auditChanges,
  badInput,
  connectionOf,
  cursorOf,
  grantsIn,
  knownTo,
  readCursor,
  refuseNulls,
} from './resolve.ts';
export type { SchemaExtension } from './extension.ts';
export type { OwnSchema, RequiredByField, Resolvers } from './own-schema.ts';
