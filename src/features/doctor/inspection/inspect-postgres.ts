import { sql } from 'kysely';
import { isKeysError, formatList } from '../../../keys/basics/index.ts';
import type { Connection } from '../../../store/index.ts';
import { type CoreTable, loadPostgres, newestSchema } from '../../../store/whole-store.ts';
import {
  checked,
  failure,
  failureBy,
  type Finding,
  type InspectOptions,
  MIGRATES,
  ok,
  schemaFindings,
  skipped,
  warning,
} from './finding.ts';
import { inspectContents } from './inspect-contents.ts';

type Postgres = Awaited<ReturnType<typeof loadPostgres>>;
type Privilege = 'select' | 'insert' | 'update' | 'delete';

const ALL: readonly Privilege[] = ['select', 'insert', 'update', 'delete'];

/** The privileges that a server needs on each table of the core, as granted in docs/postgresql.md. */
const NEEDED: Readonly<Record<CoreTable, readonly Privilege[]>> = {
  svc_api_schema: ['select'],
  svc_api_features: ['select'],
  followers: ALL,
  follower_notes: ALL,
  change_number: ['select', 'update'],
  api_keys: ['select', 'update'],
  key_labels: ['select'],
  key_uses: ALL,
  rotated_secrets: ['select'],
  audit_log: ['select', 'insert'],
  audit_head: ['select', 'insert', 'update'],
  audit_start: ['select'],
  limit_states: ['select', 'insert', 'update'],
  used_tokens: ['select', 'insert', 'delete'],
  kept_rows: ['select'],
};

const LOCK_WAIT_MS = 2000;

/** Checks a store on PostgreSQL, and changes nothing. */
export async function inspectPostgres(url: string, options: InspectOptions): Promise<Finding[]> {
  const postgres = await loadPostgres();
  let connection: Connection;
  try {
    connection = await postgres.PostgresConnection.open(url, {
      lockWaitMs: LOCK_WAIT_MS,
      mustExist: 'migrated',
      features: options.features,
    });
  } catch (error) {
    return unopened(error);
  }
  try {
    return [
      ok('STORE', `${connection.location} answers, and has a key store.`),
      ...(await checked('SCHEMA', () => inspectSchema(connection, postgres))),
      ...(await checked('SETTINGS', () => inspectSettings(connection, postgres))),
      ...(await checked('RIGHTS', () => inspectRights(connection))),
      ...(await inspectContents(connection, options)),
    ];
  } finally {
    await connection.close();
  }
}

/** Compares tables, triggers and other objects with those of this version. */
async function inspectSchema(connection: Connection, { postgresSchemaDifferences }: Postgres): Promise<Finding[]> {
  return schemaFindings(
    newestSchema(),
    await connection.run((db) => postgresSchemaDifferences(db, connection.features)),
    REMEDY,
  );
}

/** Checks that the server's settings make committed changes durable. */
async function inspectSettings(connection: Connection, { settingProblems }: Postgres): Promise<Finding[]> {
  const problems = await connection.run(settingProblems);
  if (problems.length === 0) return [ok('SETTINGS', 'The database server keeps what was reported as done.')];
  return problems.map(({ setting, consequence, remedy }) =>
    warning('SETTINGS', `The database server has ${setting}: ${consequence}.`, remedy),
  );
}

const REMEDY =
  'Find out who could change the tables. As their owner, undo it by SQL; or "copy" the store into an empty schema, ' +
  'which takes its rows alone.';

function unopened(error: unknown): Finding[] {
  const rest = ['SETTINGS', 'RIGHTS', 'AUDIT_LOG', 'CLOCK'] as const;
  if (isKeysError(error) && ['STORE_NEWER', 'STORE_OLDER'].includes(error.code))
    return [failureBy('SCHEMA', error), ...skipped(rest, 'This version does not know its schema.')];
  if (isKeysError(error) && /\(schema \d+\)/.test(error.message))
    return [
      warning(
        'SCHEMA',
        error.message,
        `Copy it first, by pg_dump. Only the owner of its tables can migrate it. ${MIGRATES}`,
      ),
      ...skipped(rest, 'They can be checked once the store is migrated.'),
    ];
  return [failureBy('STORE', error), ...skipped(['SCHEMA', ...rest], 'The store cannot be opened.')];
}

/** Checks that the database user has the privileges of a server. */
async function inspectRights(connection: Connection): Promise<Finding[]> {
  const ofFeatures = connection.features.flatMap(({ tables = {}, writtenByServers: written = [] }) =>
    Object.keys(tables).map((table) => [table, written.includes(table) ? ALL : (['select'] as const)] as const),
  );
  const needed = [...Object.entries(NEEDED), ...ofFeatures];
  const wanted = needed.flatMap(([table, privileges]) => privileges.map((privilege) => ({ table, privilege })));
  const { user, missing, canChange } = await connection.run(async (db) => {
    const { rows } = await sql<{ table: string; privilege: string; held: boolean }>`
      select wanted.table, privilege, case when privilege = 'delete' then has_table_privilege(wanted.table, privilege)
        else has_any_column_privilege(wanted.table, privilege) end as held
      from json_to_recordset(${JSON.stringify(wanted)}) as wanted("table" text, privilege text)`.execute(db);
    const { rows: own } = await sql<{ user: string; canChange: boolean }>`select current_user::text as user,
      has_table_privilege('api_keys', 'insert') as "canChange"`.execute(db);
    return { ...own[0]!, missing: rows.filter(({ held }) => !held) };
  });
  if (missing.length > 0)
    return missing.map(({ table, privilege }) =>
      failure(
        'RIGHTS',
        `The user "${user}" of the database lacks the right to ${privilege} on ${table}.`,
        `As the owner of the tables: grant ${privilege} on ${table} to ${user}. All grants: docs/postgresql.md.`,
      ),
    );
  const does = formatList(['serve', ...(canChange ? ['change keys'] : [])]);
  return [ok('RIGHTS', `The user "${user}" of the database may ${does}.`)];
}
