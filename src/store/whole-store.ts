/** The door for features that work on a whole store: its files, its schema, and stores that cannot be opened. */
export { readAuditKey } from './audit-log.ts';
export { goneFrom, olderText, pendingFeatures, readRecords, tableNamesOf } from './features.ts';
export { createKeyRepository } from './key-repository.ts';
export { clockOf } from './limit-store.ts';
export { storeLocation } from './location.ts';
export { newestSchema } from './migrations.ts';
export { storeOver } from './open.ts';
export { isPostgresUrl } from './postgres-address.ts';
export { TIME_COLUMNS } from './rows.ts';
export { openDatabase, requireDriver } from './sqlite/database.ts';
export { knowingFollowers } from './sqlite/followers.ts';
export { PrivateFile } from './sqlite/private-file.ts';
export { sqliteError } from './sqlite/sqlite-errors.ts';
export { identifyStoreFile, MainFile, requireOwnWal, sideFilesOf, storeFileExists } from './sqlite/sqlite-file.ts';
export { findDamage, requireOwnFormat, sqliteSchemaDifferences } from './sqlite/sqlite-schema.ts';
export { placeProblem, placeWarnings, requireSecureFile } from './sqlite/store-access.ts';
export type { CoreTables } from './tables.ts';

/** Loads the parts for PostgreSQL. */
export async function loadPostgres() {
  const [connection, schema] = await Promise.all([
    import('./postgres/postgres-connection.ts'),
    import('./postgres/postgres-schema.ts'),
  ]);
  return { ...connection, ...schema };
}
