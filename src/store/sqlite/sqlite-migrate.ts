import { type Kysely, sql } from 'kysely';
import { KeysError } from '../../keys/errors.ts';
import { debug } from '../../keys/steps.ts';
import { migrationsBetween, newestSchema, olderStore, requireKnownSchema } from '../migrations.ts';
import type { MustExist } from '../connection.ts';
import type { Tables } from '../tables.ts';

/** Marks an SQLite file as a key store: "svck". */
export const APPLICATION_ID = 0x73_76_63_6b;

/**
 * Brings an SQLite store to the newest schema, in one transaction that holds the write lock: of several programs that
 * start at once, one migrates and the others find it done. The file's `user_version` is the version of the schema.
 * @throws KeysError STORE_FOREIGN for an SQLite file that is not a key store, STORE_NEWER for one of a later version,
 * STORE_OLDER for one of no release, STORE_UNAVAILABLE for an empty file if the store must exist
 */
export async function migrateSqlite(
  db: Kysely<Tables>,
  location: string,
  mustExist: MustExist,
  newest = newestSchema(),
): Promise<void> {
  const current = await requireOwnFormat(db, location);
  if (current === newest) return;
  if (current === 0 && mustExist)
    throw new KeysError('STORE_UNAVAILABLE', `The key store ${location} is an empty file. Check the path.`);
  if (mustExist === 'migrated') throw olderStore(location, current);
  await sql`pragma journal_mode = wal`.execute(db);
  await db.transaction().execute(async (transaction) => {
    const version = await requireOwnFormat(transaction, location);
    for (const migrate of migrationsBetween(version, newest)) await migrate(transaction, 'sqlite');
    await sql`pragma application_id = ${sql.lit(APPLICATION_ID)}`.execute(transaction);
    await sql`pragma user_version = ${sql.lit(newest)}`.execute(transaction);
    debug('the store is migrated', () => ({ store: location, from: version, to: newest }));
  });
}

interface Marks {
  applicationId: number;
  version: number;
  tables: number;
}

/**
 * The version of the schema of a file; 0 for an empty one.
 * @throws KeysError STORE_FOREIGN, STORE_NEWER, STORE_OLDER
 */
export async function requireOwnFormat(db: Kysely<Tables>, location: string): Promise<number> {
  // One statement sees one state of the file: another program may be creating the store.
  const { rows } = await sql<Marks>`select application_id as "applicationId", user_version as version,
    (select count(*) from sqlite_schema) as tables from pragma_application_id, pragma_user_version`.execute(db);
  const { applicationId, version, tables } = rows[0]!;
  if (applicationId !== APPLICATION_ID && (applicationId !== 0 || version !== 0 || tables > 0)) {
    throw new KeysError(
      'STORE_FOREIGN',
      `${location} is an SQLite file of another program, not a key store. Check the path.`,
    );
  }
  requireKnownSchema(version, location);
  return version;
}
