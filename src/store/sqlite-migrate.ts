import { type Kysely, sql } from 'kysely';
import { KeysError } from '../keys/errors.ts';
import { MIGRATIONS } from './migrations/index.ts';
import type { Tables } from './tables.ts';

/** Marks an SQLite file as a key store: "svck". */
const APPLICATION_ID = 0x73_76_63_6b;

/**
 * Brings an SQLite store to the newest schema, in one transaction that holds the write lock: of several programs that
 * start at once, one migrates and the others find it done. The schema's number is the file's `user_version`.
 * @throws KeysError STORE_FOREIGN for an SQLite file that is no key store, STORE_NEWER for one of a later version
 */
export async function migrateSqlite(db: Kysely<Tables>, location: string): Promise<void> {
  if ((await versionOf(db, location)) === MIGRATIONS.length) return;
  await sql`pragma journal_mode = wal`.execute(db);
  await db.transaction().execute(async (transaction) => {
    const version = await versionOf(transaction, location);
    for (const migrate of MIGRATIONS.slice(version)) await migrate(transaction, 'sqlite');
    await sql`pragma application_id = ${sql.lit(APPLICATION_ID)}`.execute(transaction);
    await sql`pragma user_version = ${sql.lit(MIGRATIONS.length)}`.execute(transaction);
  });
}

async function versionOf(db: Kysely<Tables>, location: string): Promise<number> {
  const { application_id: applicationId } = await one<{ application_id: number }>(db, 'pragma application_id');
  const { user_version: version } = await one<{ user_version: number }>(db, 'pragma user_version');
  const { tables } = await one<{ tables: number }>(db, 'select count(*) as tables from sqlite_schema');
  if (applicationId !== APPLICATION_ID && (applicationId !== 0 || version !== 0 || tables > 0)) {
    throw new KeysError('STORE_FOREIGN', `${location} is an SQLite file of another program, not a key store. Check the path.`);
  }
  if (version > MIGRATIONS.length) {
    throw new KeysError(
      'STORE_NEWER',
      `The key store ${location} was made by a newer version of svc-api (schema ${version}; this one knows ${MIGRATIONS.length}). Update svc-api.`,
    );
  }
  return version;
}

async function one<Row>(db: Kysely<Tables>, query: string): Promise<Row> {
  return (await sql.raw<Row>(query).execute(db)).rows[0]!;
}
