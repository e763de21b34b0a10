/** The tables, and the repository that the rules ask for, on SQLite and PostgreSQL. */
export type { Connection, DialectName, StoreTimer } from './connection.ts';
export { KeyChanges } from './key-changes.ts';
export { driverCodeOf } from './errors.ts';
export { feed, FEED_COLUMNS } from './feed.ts';
export { failureBy, type Finding, ok, warning } from './inspection/finding.ts';
export { inspectStore } from './inspection/inspect-store.ts';
export type { Store } from './open.ts';
export { type AnyPortOfStore, portOfStore } from './port-of-store.ts';
export { apiKeyOf, chunksOf, idStart, isAbout, isId, readStoredKey, rowOf, toNumber } from './rows.ts';
export { findFamily, foundBy } from './select-keys.ts';
export {
  API_KEY_COLUMNS,
  type ApiKeyTable,
  type ApplicationKeyTable,
  type ConsentRequestTable,
  type KeyEffectTable,
  type KeyRow,
  type SessionTable,
  type Tables,
} from './tables.ts';
