/** The door for features that work on a whole store: its files, its schema, and stores that cannot be opened. */
export { auditReaderOf, indexEntries, readAuditKey } from './audit-log.ts';
export { tracedKysely } from './connection.ts';
export {
  emptyTables,
  type FeatureRecord,
  goneFrom,
  olderText,
  pendingFeatures,
  ranOf,
  readRecords,
  tableNamesOf,
} from './features.ts';
export { insertRows, type Row } from './insert-rows.ts';
export { MAX_CHANGES } from './key-changes.ts';
export { createKeyRepository } from './key-repository.ts';
export { clockOf } from './limit-store.ts';
export { storeLocation } from './location.ts';
export { newestSchema } from './migrations.ts';
export { openConnection, storeExists, storeOver } from './open.ts';
export { isPostgresUrl, readPostgresUrl } from './postgres-address.ts';
export { countRows, storedHash, TIME_COLUMNS } from './rows.ts';
export type { CoreTable } from './postgres/postgres-schema.ts';
export { openDatabase, openPrivateDatabase, type PrivateDatabase, requireDriver } from './sqlite/database.ts';
export { knowingFollowers, leasesEnded } from './sqlite/followers.ts';
export { PrivateFile } from './sqlite/private-file.ts';
export { dialectOf } from './sqlite/sqlite-driver.ts';
export { sqliteError } from './sqlite/sqlite-errors.ts';
export {
  createStoreFile,
  type FileIdentity,
  identifySideFiles,
  identifyStoreFile,
  isSameFile,
  MainFile,
  removeSideFiles,
  requireOwnWal,
  sideFilesOf,
  storeFileExists,
} from './sqlite/sqlite-file.ts';
export {
  APPLICATION_ID,
  findDamage,
  migrateSqlite,
  requireOwnFormat,
  sqliteSchemaDifferences,
} from './sqlite/sqlite-schema.ts';
export { createStore, isShared, placeProblem, placeWarnings, requireSecureFile } from './sqlite/store-access.ts';
export { type FeatureTables, TABLES, TRANSIENT_TABLES } from './tables.ts';

/** Loads the parts for PostgreSQL. */
export async function loadPostgres() {
  const [connection, schema] = await Promise.all([
    import('./postgres/postgres-connection.ts'),
    import('./postgres/postgres-schema.ts'),
  ]);
  return { ...connection, ...schema };
}
