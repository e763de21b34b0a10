/** The tables, and the repository that the rules ask for, on SQLite and PostgreSQL. */
export type { StoreTimer } from './connection.ts';
export { failureBy, type Finding, ok } from './inspection/finding.ts';
export { inspectStore } from './inspection/inspect-store.ts';
