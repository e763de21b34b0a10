/** The tables, and the repository that the rules ask for, on SQLite and PostgreSQL. */
export type { StoreTimer } from './connection.ts';
export { KeyChanges } from './key-changes.ts';
export { FEED_COLUMNS } from './feed.ts';
export { failureBy, type Finding, ok, warning } from './inspection/finding.ts';
export { inspectStore } from './inspection/inspect-store.ts';
export type { Store } from './open.ts';
export { apiKeyOf } from './rows.ts';
export { foundBy } from './select-keys.ts';
export type { KeyRow } from './tables.ts';
