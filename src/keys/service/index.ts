/** All rules together, as the library, servers and commands use them. */
export {
  type Applied,
  type Changed,
  type ConsentPlace,
  type ConsentState,
  type Contained,
  type Created,
  type Deleted,
  type KeyAdministration,
  type KeyDecision,
  type KeyLimit,
  type KeyName,
  type KeyPage,
  type KeyState,
  type ManyPlan,
  type ReviewedKey,
  type SortedKeys,
  type KeyWithAccess,
  type NamedIssue,
  OperatorKeys,
  type Preview,
  type Rotated,
  stateOf,
} from './administration.ts';
export { type CreatedKey, formatCursor, isCursor, type Page, type PageQuery, type RotatedKey } from './management.ts';
export { type KeysOptions, KeysService, SERVICE } from './service.ts';
