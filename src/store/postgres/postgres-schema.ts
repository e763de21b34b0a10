import { randomBytes } from 'node:crypto';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import { debug, KeysError, printable } from '../../keys/basics/index.ts';
import {
  differencesOf,
  type FollowerNote,
  NOTE_KEPT_MS,
  type SchemaDifference,
  type SchemaPart,
} from '../../keys/repository/index.ts';
import { driverCodeOf } from '../errors.ts';
import { goneFrom, migrateFeatures, olderText, ranOf, readRecords, tableNamesOf } from '../features.ts';
import { migrationsBetween, newestSchema, requireKnownSchema } from '../migrations.ts';
import { type FeatureTables, TRANSIENT_TABLES, TABLE_NAMES, type Tables } from '../tables.ts';

/** The tables of the core. */
const CORE_TABLES = [
  'svc_api_schema',
  'svc_api_features',
  'followers',
  'follower_notes',
  'change_number',
  ...TRANSIENT_TABLES,
  ...TABLE_NAMES,
] as const;

/** The name of a table of the core. */
export type CoreTable = (typeof CORE_TABLES)[number];

/** The tables of a store, including those of features. */
export function ownTables(features: readonly FeatureTables[]): string[] {
  return [...CORE_TABLES, ...tableNamesOf(features)];
}

/**
 * Takes the lock that admits one writer at a time, until the transaction ends. Readers do not need it. Enables
 * synchronous commits, whatever the server's setting: with `off`, a crash could undo a change that was already reported
 * as done.
 */
export async function lockWriters(transaction: Kysely<Tables>): Promise<void> {
  await sql`select pg_advisory_xact_lock(${lockKey(sql`current_schema()`)}),
    set_config('synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), true)`.execute(
    transaction,
  );
}

/**
 * Notifies followers of the number of a change, at the end of its transaction, which holds the writers' lock, so that
 * numbers are in the order of commits. Triggers announce its keys.
 * @returns the number
 */
export async function announceChange(transaction: Kysely<Tables>): Promise<number> {
  const { rows } = await sql<{ number: string }>`with next as (
      update change_number set number = number + 1 returning number
    ) select number, pg_notify('svc_api_changed_keys', json_build_object('schema', current_schema(),
      'keys', json_build_array(), 'number', number)::text) from next`.execute(transaction);
  return Number(rows[0]!.number);
}

/** True if all followers that trust their memory know of a committed change. */
export async function isFollowed(db: Kysely<Tables>, change: number): Promise<boolean> {
  const { rows } = await sql<{ isFollowed: boolean }>`select not exists (select from followers
    where seen < ${change} and leased_until > extract(epoch from clock_timestamp()) * 1000) as "isFollowed"`.execute(
    db,
  );
  return rows[0]!.isFollowed;
}

const NOW = sql`(extract(epoch from clock_timestamp()) * 1000)::bigint`;

/** Replaces the note of a follower, without waiting for the disk. */
export async function writeNote(db: Kysely<Tables>, id: string, text: string): Promise<void> {
  await sql`with gone as (delete from follower_notes where written_at < ${NOW} - ${NOTE_KEPT_MS})
    insert into follower_notes (id, written_at, note) values (${id}, ${NOW}, ${text})
    on conflict (id) do update set written_at = excluded.written_at, note = excluded.note
    returning set_config('synchronous_commit', 'off', true)`.execute(db);
}

/** The notes of all followers. */
export async function notesOf(db: Kysely<Tables>): Promise<FollowerNote[]> {
  const { rows } = await sql<{ age: string; note: string }>`select ${NOW} - written_at as age, note
    from follower_notes`.execute(db);
  return rows.map(({ age, note }) => ({ text: note, ageMs: Number(age) }));
}

/**
 * Refuses a server that only imitates PostgreSQL: one without real locks or notifications would silently lose changes.
 * @throws KeysError STORE_UNAVAILABLE
 */
export async function requirePostgres(db: Kysely<Tables>, location: string): Promise<void> {
  const { rows } = await sql<{ version: string }>`select pg_catalog.version() as version`.execute(db);
  const problem = engineProblem(rows[0]!.version);
  if (problem !== undefined)
    throw new KeysError(
      'STORE_UNAVAILABLE',
      `The key store ${location} cannot be opened: ${problem}. Use PostgreSQL 14 or later.`,
    );
}

/** Why a server cannot hold a store, judging by its version; undefined if it can. */
export function engineProblem(version: string): string | undefined {
  const [, engine, major] = /^(\w+)\D*(\d+)/.exec(version) ?? [version, version];
  const other = /cockroach|yugabyte|-YB-|redshift|materialize|risingwave|spanner/i.exec(version);
  if (other || engine !== 'PostgreSQL')
    return `its server is "${printable(version, 40)}", whose locks or notifications are not those of PostgreSQL`;
  return Number(major) < 14 ? `its server is PostgreSQL ${major}` : undefined;
}

/** A problem with a setting of the database server. */
export interface SettingProblem {
  /** The setting, such as `fsync = off`. */
  setting: string;
  /** The possible consequence. */
  consequence: string;
  /** The remedy. */
  remedy: string;
}

/** Settings of the database server that break guarantees about changes: see docs/postgresql.md. */
export async function settingProblems(db: Kysely<Tables>): Promise<SettingProblem[]> {
  const { rows } = await sql<{ fsync: string; pages: string; readOnly: string; replica: boolean }>`select
    current_setting('fsync') as fsync, current_setting('full_page_writes') as pages,
    current_setting('default_transaction_read_only') as "readOnly", pg_is_in_recovery() as replica`.execute(db);
  const { fsync, pages, readOnly, replica } = rows[0]!;
  const isLost = 'a crash of the machine can undo changes, revocations too, or damage the store';
  const problems = [
    { isSo: fsync === 'off', setting: 'fsync = off', consequence: isLost, remedy: 'Set fsync = on.' },
    {
      isSo: pages === 'off',
      setting: 'full_page_writes = off',
      consequence: isLost,
      remedy: 'Set full_page_writes = on.',
    },
    {
      isSo: readOnly === 'on',
      setting: 'default_transaction_read_only = on',
      consequence: 'no key can be changed or revoked',
      remedy: 'Set it to off, for this user of the database or for all.',
    },
    {
      isSo: replica,
      setting: 'in recovery',
      consequence: 'a standby lags behind, notifies of no changes, and takes none',
      remedy: 'Give the address of the primary.',
    },
  ];
  return problems.filter(({ isSo }) => isSo);
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
export async function requireOwner(
  db: Kysely<Tables>,
  { location, version, pending }: { location: string; version: number; pending: readonly FeatureTables[] },
): Promise<void> {
  const { rows } = await sql<{ owner: string; isMember: boolean }>`select pg_get_userbyid(relowner) as owner,
    pg_has_role(relowner, 'usage') as "isMember" from pg_class where oid = 'svc_api_schema'::regclass`.execute(db);
  const { owner, isMember } = rows[0]!;
  if (isMember) return;
  throw new KeysError(
    'STORE_READONLY',
    (version < newestSchema()
      ? `The key store ${location} has schema ${version}, and this version of svc-api needs ${newestSchema()}. `
      : `The key store ${location} ${olderText(version, pending)}. `) +
      `Open it once as the owner of its tables, ${owner}, by any command of this version: that migrates it.`,
  );
}

/** The store to migrate, and how far. */
export interface PostgresMigration {
  /** The URL without its password. */
  location: string;
  /** The schema of the tables, created if it is missing. Default: the first of the search path. */
  schema: string | undefined;
  features: readonly FeatureTables[];
}

/**
 * Brings a PostgreSQL store to the newest schema, in one transaction that locks out other writers: of several programs
 * started at once, one migrates and the others find it done.
 * @returns true if it created the store
 * @throws KeysError STORE_FOREIGN if another program has tables of the same names; STORE_NEWER, STORE_OLDER;
 * FEATURE_INVALID for a migration of a feature that fails
 */
export function migratePostgres(
  db: Kysely<Tables>,
  { location, schema, features }: PostgresMigration,
): Promise<boolean> {
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
      if (isNew && ownTables(features).some((table) => found.has(table))) {
        throw new KeysError(
          'STORE_FOREIGN',
          `The database ${location} has tables of another program with the same names as those of svc-api. ` +
            'Use another database, or another schema: …?schema=svc_api.',
        );
      }
      if (isNew) await createVersionTable(transaction);
      const version = (await versionOf(transaction, location)) ?? 0;
      for (const migrate of migrationsBetween(version, newest)) await migrate(transaction, 'postgres');
      await migrateFeatures(transaction, 'postgres', features);
      await sql`update svc_api_schema set version = ${newest}`.execute(transaction);
      debug('the store is migrated', () => ({ store: location, from: version, to: newest }));
      return isNew;
    });
}

/** The table with the schema's version. */
export async function createVersionTable(db: Kysely<Tables>): Promise<void> {
  await sql`create table svc_api_schema (
    one integer primary key check (one = 1),
    version integer not null
  )`.execute(db);
  await sql`insert into svc_api_schema values (1, 0)`.execute(db);
}

/** `create schema if not exists` would need the right to create schemas even if it exists. */
async function createSchema(transaction: Kysely<Tables>, schema: string): Promise<void> {
  const { rows } = await sql`select 1 from pg_namespace where nspname = ${schema}`.execute(transaction);
  if (rows.length === 0) await sql`create schema ${sql.id(schema)}`.execute(transaction);
}

/** The lock of one store. A database can have several stores, each in its own schema. */
function lockKey(schema: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`hashtextextended('svc-api ' || ${schema}, 0)`;
}

/** PostgreSQL codes for missing rights, and for a read-only server. */
const NOT_PERMITTED: ReadonlySet<string> = new Set(['42501', '25006']);

/**
 * Differences between a store's schema and the newest version's; `unknown` if this user cannot create objects for the
 * comparison, which happens in a transaction that is rolled back. Other programs can have their own tables and
 * functions beside the store.
 */
export async function postgresSchemaDifferences(
  db: Kysely<Tables>,
  features: readonly FeatureTables[],
): Promise<SchemaDifference[] | 'unknown'> {
  return db.connection().execute(async (connection) => {
    await sql`begin isolation level read committed`.execute(connection);
    try {
      const { rows } = await sql<{ schema: string }>`select current_schema()::text as schema`.execute(connection);
      const { schema } = rows[0]!;
      const records = await readRecords(connection);
      const scratch = `svc_api_made_${randomBytes(8).toString('hex')}`;
      await sql`create schema ${sql.id(scratch)}`.execute(connection);
      await useSchema(connection, scratch);
      await createVersionTable(connection);
      for (const migrate of migrationsBetween(0, newestSchema())) await migrate(connection, 'postgres');
      await migrateFeatures(connection, 'postgres', features, ranOf(records));
      // Names from an extension in the store's own schema appear there without the schema.
      const own = ownTables(features);
      const gone = tableNamesOf(goneFrom(records, features));
      const made = (await partsIn(connection, scratch, own, gone)).map(({ definition, ...part }) => ({
        ...part,
        definition: definition.replaceAll(`${schema}.`, ''),
      }));
      const functions = new Set(made.filter(({ type }) => type === 'function').map(({ name }) => name));
      const found = await partsIn(connection, schema, own, gone);
      const isKnown = ({ type, name }: SchemaPart) => type !== 'function' || functions.has(name);
      return differencesOf(made, found.filter(isKnown));
    } catch (error) {
      if (NOT_PERMITTED.has(driverCodeOf(error) ?? '')) return 'unknown';
      throw error;
    } finally {
      await sql`rollback`.execute(connection);
    }
  });
}

async function useSchema(db: Kysely<Tables>, schema: string): Promise<void> {
  await sql`select set_config('search_path', ${`"${schema}", pg_temp`}, true)`.execute(db);
}

/**
 * The parts of a store in a schema. Names appear without the schema if it is first in the search path; the search paths
 * of functions are compared by the schema that they resolve to.
 * @param gone tables of features that are not installed, which can refer to the others
 */
async function partsIn(
  db: Kysely<Tables>,
  schema: string,
  tables: readonly string[],
  gone: readonly string[],
): Promise<SchemaPart[]> {
  await useSchema(db, schema);
  const { rows } = await sql<SchemaPart>`
    with own as (select oid, relname from pg_class
      where relnamespace = to_regnamespace(${schema}) and relname = any(${tables}::text[]))
    select 'table' as type, relname::text as name, concat_ws(' ', relkind, relpersistence, relrowsecurity,
        relforcerowsecurity) as definition
      from pg_class where oid in (select oid from own)
    union all select 'column', relname || '.' || attname, concat_ws(' ', format_type(atttypid, atttypmod),
        (select collname from pg_collation where oid = attcollation), attnotnull, attgenerated, attidentity,
        pg_get_expr(adbin, adrelid))
      from pg_attribute join own on own.oid = attrelid
      left join pg_attrdef on adrelid = attrelid and adnum = attnum where attnum > 0 and not attisdropped
    union all select 'constraint', relname || '.' || conname,
        concat_ws(' ', pg_get_constraintdef(pg_constraint.oid, true), convalidated)
      from pg_constraint join own on own.oid = conrelid where contype not in ('n', 't')
    union all select 'constraint', conrelid::regclass || '.' || conname, ''
      from pg_constraint where confrelid in (select oid from own) and conrelid not in (select oid from own)
        and conrelid not in (select oid from pg_class where relnamespace = to_regnamespace(${schema})
          and relname = any(${gone}::text[]))
    union all select 'index', indexed.relname::text, concat_ws(' ', indisvalid, pg_get_indexdef(indexrelid, 0, true))
      from pg_index join own on own.oid = indrelid join pg_class indexed on indexed.oid = indexrelid
    union all select 'trigger', relname || '.' || tgname,
        concat_ws(' ', tgenabled, pg_get_triggerdef(pg_trigger.oid, true))
      from pg_trigger join own on own.oid = tgrelid where not tgisinternal
    union all select 'trigger', relname || '.' || tgname, tgenabled::text
      from pg_trigger join own on own.oid = tgrelid where tgisinternal and tgenabled <> 'O'
    union all select 'rule', relname || '.' || rulename, pg_get_ruledef(pg_rewrite.oid, true)
      from pg_rewrite join own on own.oid = ev_class
    union all select 'policy', relname || '.' || polname, ''
      from pg_policy join own on own.oid = polrelid
    union all select 'table', inhrelid::regclass::text, ''
      from pg_inherits where inhparent in (select oid from own)
    union all select 'function', format('%s(%s)', proname, pg_get_function_identity_arguments(pg_proc.oid)),
        concat_ws(' ', prosrc, prolang, prosecdef, provolatile, prorettype::regtype, prokind)
      from pg_proc where pronamespace = to_regnamespace(${schema})`.execute(db);
  const settings = await settingsOfFunctions(db, schema);
  return rows.map((part) => {
    const own = part.type === 'function' ? settings.get(part.name) : undefined;
    return own ? { ...part, definition: [part.definition, ...own].join(' ') } : part;
  });
}

/** Settings of functions. Search paths are compared by whether they lead to this schema, in any spelling. */
async function settingsOfFunctions(db: Kysely<Tables>, schema: string): Promise<Map<string, string[]>> {
  const { rows } = await sql<{ name: string; setting: string }>`
    select format('%s(%s)', proname, pg_get_function_identity_arguments(pg_proc.oid)) as name, setting
    from pg_proc, unnest(proconfig) setting where pronamespace = to_regnamespace(${schema}) order by 1, 2`.execute(db);
  const settings = new Map<string, string[]>();
  for (const { name, setting } of rows) {
    const [variable, value] = setting.split(/=(.*)/s) as [string, string];
    const leadsHere = variable === 'search_path' && (await firstSchemaOf(db, value)) === schema;
    settings.set(name, [...(settings.get(name) ?? []), leadsHere ? 'search_path leads here' : setting]);
  }
  return settings;
}

async function firstSchemaOf(db: Kysely<Tables>, path: string): Promise<string> {
  await sql`select set_config('search_path', ${path}, true)`.execute(db);
  return (await sql<{ schema: string }>`select current_schema()::text as schema`.execute(db)).rows[0]!.schema;
}

/** The database objects to check. */
export interface OwnershipCheck {
  /** The URL without its password. */
  location: string;
  tables: readonly string[];
  /** A role that is allowed to own them as well. */
  owner: string | undefined;
}

/**
 * Refuses tables that another role could have planted, to read digests and change keys. Superusers and the database
 * owner could do so anyway. Must run before anything is read from the tables, since reading a view would run functions.
 * @throws KeysError STORE_FOREIGN
 */
export async function requireOwnTables(
  db: Kysely<Tables>,
  { location, tables, owner = '' }: OwnershipCheck,
): Promise<void> {
  // A superuser has the rights of every role, so its rights do not reveal whose objects it trusts.
  const trusted = sql`select oid from pg_roles where rolsuper or rolname in (current_user, ${owner}::name)
    or oid = (select datdba from pg_database where datname = current_database())
    or pg_has_role(oid, 'usage') and not (select rolsuper from pg_roles where rolname = current_user)`;
  const { rows: schemas } = await sql<{ name: string; grantee: string }>`select nspname::text as name,
      case when grantee = 0 then 'public' else pg_get_userbyid(grantee)::text end as grantee
    from pg_namespace, aclexplode(nspacl)
    where nspname = any(current_schemas(false)) and privilege_type = 'CREATE'
      and grantee not in (${trusted}) and grantee <> nspowner`.execute(db);
  const [schema] = schemas;
  if (schema) {
    const { name, grantee } = schema;
    throw new KeysError(
      'STORE_FOREIGN',
      `The key store ${location} is not safe: ${grantee === 'public' ? 'every role' : `the role "${grantee}"`} can ` +
        `create functions in the schema "${name}", which its queries would call. ` +
        `Run "revoke create on schema ${name} from ${grantee}", or use another schema: …?schema=svc_api.`,
    );
  }
  const { rows: objects } = await sql<{ kind: string; name: string; owner: string }>`
    with trusted(oid) as (
      ${trusted}
    ), ours(oid) as (
      select to_regclass(name)::oid from unnest(${tables}::text[]) as given(name)
    )
    select case when relkind in ('r', 'p') then 'table' else 'view' end as kind, relname::text as name,
        pg_get_userbyid(relowner)::text as owner
      from pg_class join ours using (oid)
      where relkind not in ('r', 'p') or relowner not in (select oid from trusted)
    union all
    select 'function', proname::text, pg_get_userbyid(proowner)::text
      from pg_trigger join pg_proc on pg_proc.oid = tgfoid
      where tgrelid in (select oid from ours) and not tgisinternal and proowner not in (select oid from trusted)
    limit 1`.execute(db);
  const [object] = objects;
  if (!object) return;
  throw new KeysError(
    'STORE_FOREIGN',
    `The key store ${location} is not safe: its ${object.kind} "${object.name}" belongs to the role ` +
      `"${object.owner}", which can read and change keys. If that is intended, add the parameter ` +
      `owner=${object.owner} to its address; otherwise use another schema: …?schema=svc_api.`,
  );
}

/** Refuses a connection pooler that ignores the requested schema. @throws KeysError STORE_UNAVAILABLE */
export async function requireSearchPath(db: Kysely<Tables>, location: string, schema: string): Promise<void> {
  const { rows } = await sql<{ path: string }>`select current_setting('search_path') as path`.execute(db);
  if (rows[0]!.path.split(',')[0] === schema) return;
  throw new KeysError(
    'STORE_UNAVAILABLE',
    `The key store ${location} cannot be opened: a connection pooler ignores "schema". Leave it out, and set ` +
      `the search path of its user: alter role … set search_path = ${schema}, pg_temp.`,
  );
}
