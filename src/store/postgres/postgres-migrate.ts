import { type Kysely, type RawBuilder, sql } from 'kysely';
import { KeysError } from '../../keys/errors.ts';
import { debug } from '../../keys/steps.ts';
import { driverCodeOf } from '../errors.ts';
import { migrationsBetween, newestSchema, requireKnownSchema } from '../migrations.ts';
import { PASSING_TABLES, TABLE_NAMES, type Tables } from '../tables.ts';

/** Takes the lock that admits one writer at a time, until the transaction ends. Readers do not need it. */
export async function lockWriters(transaction: Kysely<Tables>): Promise<void> {
  await sql`select pg_advisory_xact_lock(${lockKey(sql`current_schema()`)})`.execute(transaction);
}

/** The version of a store's schema; undefined if there is no store. @throws KeysError STORE_NEWER, STORE_OLDER */
export async function versionOf(db: Kysely<Tables>, location: string): Promise<number | undefined> {
  let version;
  try {
    version = (await sql<{ version: number }>`select version from svc_api_schema`.execute(db)).rows[0]?.version;
  } catch (error) {
    if (driverCodeOf(error) === '42P01') return undefined;
    throw error;
  }
  if (version !== undefined) requireKnownSchema(version, location);
  return version;
}

/** Refuses to migrate the tables of another user. @throws KeysError STORE_READONLY */
export async function requireOwner(db: Kysely<Tables>, location: string, version: number): Promise<void> {
  const { rows } = await sql<{ owner: string; isMember: boolean }>`select pg_get_userbyid(relowner) as owner,
    pg_has_role(relowner, 'usage') as "isMember" from pg_class where oid = 'svc_api_schema'::regclass`.execute(db);
  const { owner, isMember } = rows[0]!;
  if (isMember) return;
  throw new KeysError(
    'STORE_READONLY',
    `The key store ${location} has schema ${version}, and this version of svc-api needs ${newestSchema()}. ` +
      `Open it once as the owner of its tables, ${owner}, by any command of this version: that migrates it.`,
  );
}

/** Which store to migrate, and how far. */
export interface PostgresMigration {
  /** The URL without its password. */
  location: string;
  /** The schema of the tables, created if it is missing. Default: the first of the search path. */
  schema: string | undefined;
}

/**
 * Brings a PostgreSQL store to the newest schema, in one transaction that locks out other writers: of several programs
 * that start at once, one migrates and the others find it done.
 * @returns whether it created the store
 * @throws KeysError STORE_FOREIGN if another program has tables of the same names; STORE_NEWER, STORE_OLDER
 */
export function migratePostgres(db: Kysely<Tables>, { location, schema }: PostgresMigration): Promise<boolean> {
  const newest = newestSchema();
  return db
    .transaction()
    .setIsolationLevel('read committed')
    .execute(async (transaction) => {
      const target = sql`coalesce(${schema ?? null}::text, current_schema())`;
      await sql`select pg_advisory_xact_lock(${lockKey(target)})`.execute(transaction);
      if (schema !== undefined) await createSchema(transaction, schema);
      const { rows } = await sql<{ found: string }>`select table_name::text as found from information_schema.tables
        where table_schema = current_schema()`.execute(transaction);
      const found = new Set(rows.map((row) => row.found));
      const isNew = !found.has('svc_api_schema');
      if (isNew && [...PASSING_TABLES, ...TABLE_NAMES].some((table) => found.has(table))) {
        throw new KeysError(
          'STORE_FOREIGN',
          `The database ${location} has tables of another program with the same names as those of svc-api. ` +
            'Use another database, or another schema: …?schema=svc_api.',
        );
      }
      if (isNew) await createVersionTable(transaction);
      const version = (await versionOf(transaction, location)) ?? 0;
      for (const migrate of migrationsBetween(version, newest)) await migrate(transaction, 'postgres');
      await sql`update svc_api_schema set version = ${newest}`.execute(transaction);
      debug('the store is migrated', () => ({ store: location, from: version, to: newest }));
      return isNew;
    });
}

/** What has the version of the schema. */
export async function createVersionTable(db: Kysely<Tables>): Promise<void> {
  await sql`create table svc_api_schema (
    one integer primary key check (one = 1),
    version integer not null
  )`.execute(db);
  await sql`insert into svc_api_schema values (1, 0)`.execute(db);
}

/** `create schema if not exists` would need the right to create one even if it exists. */
async function createSchema(transaction: Kysely<Tables>, schema: string): Promise<void> {
  const { rows } = await sql`select 1 from pg_namespace where nspname = ${schema}`.execute(transaction);
  if (rows.length === 0) await sql`create schema ${sql.id(schema)}`.execute(transaction);
}

/** The lock of a store: one database may have several, each in its own schema. */
function lockKey(schema: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`hashtextextended('svc-api ' || ${schema}, 0)`;
}
