import { randomBytes } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import { differencesOf, type SchemaDifference, type SchemaPart } from '../../keys/schema.ts';
import { migrationsBetween, newestSchema } from '../migrations.ts';
import { PASSING_TABLES, TABLE_NAMES, type Tables } from '../tables.ts';
import { driverCodeOf } from '../errors.ts';
import { createVersionTable } from './postgres-migrate.ts';

const OWN_TABLES = ['svc_api_schema', ...PASSING_TABLES, ...TABLE_NAMES];
/** The index of searches, which a store has where the server has the extension for it. */
const OPTIONAL = 'api_keys_by_search_text';
/** Codes of PostgreSQL for what a user may not do, and for a server that can only be read. */
const NOT_PERMITTED: ReadonlySet<string> = new Set(['42501', '25006']);

/**
 * In what the schema of a store of the newest version is not as it is made; `unknown` where this user may make none to
 * compare it with: that is done in a transaction, which is undone. Other programs may have tables beside those of the
 * store, and functions.
 */
export async function postgresSchemaDifferences(db: Kysely<Tables>): Promise<SchemaDifference[] | 'unknown'> {
  return db.connection().execute(async (connection) => {
    await sql`begin isolation level read committed`.execute(connection);
    try {
      const { rows } = await sql<{ schema: string }>`select current_schema()::text as schema`.execute(connection);
      const { schema } = rows[0]!;
      const scratch = `svc_api_made_${randomBytes(8).toString('hex')}`;
      await sql`create schema ${sql.id(scratch)}`.execute(connection);
      await useSchema(connection, scratch);
      await createVersionTable(connection);
      for (const migrate of migrationsBetween(0, newestSchema())) await migrate(connection, 'postgres');
      const made = await partsIn(connection, scratch);
      const functions = new Set(made.filter(({ type }) => type === 'function').map(({ name }) => name));
      const found = await partsIn(connection, schema);
      const isKnown = ({ type, name }: SchemaPart) => type !== 'function' || functions.has(name);
      return differencesOf(made, found.filter(isKnown)).filter(
        ({ name, difference }) => difference !== 'missing' || name !== OPTIONAL,
      );
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
 * What a schema has of a store. Names are shown without that schema, as far as it is searched first; what a function
 * searches is compared by which schema that is.
 */
async function partsIn(db: Kysely<Tables>, schema: string): Promise<SchemaPart[]> {
  await useSchema(db, schema);
  const { rows } = await sql<SchemaPart>`
    with own as (select oid, relname from pg_class
      where relnamespace = to_regnamespace(${schema}) and relname in (${sql.join(OWN_TABLES)}))
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

/** What functions set. A path of schemas is compared by whether it leads to this one, however it is written. */
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
