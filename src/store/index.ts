/** The store: tables, and the repository for the rules, on SQLite and PostgreSQL. */
export type { Connection, DialectName, StoreTimer } from './connection.ts';
export { auditReaderOf } from './audit-log.ts';
export { KeyChanges } from './key-changes.ts';
export { driverCodeOf } from './errors.ts';
export { transactionsApart } from './limit-store.ts';
export type { Store } from './open.ts';
export { type FeatureInStore, portOfStore, portsOf, type Reading, type StoreOfFeature } from './port-of-store.ts';
export {
  apiKeyOf,
  chunksOf,
  countRows,
  idsAmong,
  idStart,
  isAbout,
  isId,
  jsonRowId,
  jsonRowNumber,
  jsonRows,
  jsonRowsOf,
  jsonRowText,
  readStoredKey,
  rowOf,
  toNumber,
} from './rows.ts';
export { findFamily, foundBy, pagesOfKeys } from './select-keys.ts';
export {
  API_KEY_COLUMNS,
  type ApiKeyTable,
  type ColumnTypes,
  FEED_COLUMNS,
  type KeyRow,
  type Tables,
  type TablesOfFeature,
} from './tables.ts';
