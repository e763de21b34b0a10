import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Kysely, PostgresDialect } from 'kysely';
import { Client, escapeLiteral, Pool, type QueryResult } from 'pg';
import { readPostgresUrl } from '../../src/store/postgres-address.ts';
import { migratePostgres } from '../../src/store/postgres/postgres-schema.ts';
import type { Tables } from '../../src/store/tables.ts';
import { STORES } from './features.ts';

const CHILD = fileURLToPath(new URL('./postgres-child.ts', import.meta.url));

/** A PostgreSQL server for tests. */
export interface PostgresServer {
  url: string;
  stop(): Promise<void>;
}

/** The template of the test databases, and its number of stores without keys. */
const TEMPLATE = { name: 'template_of_stores', stores: 48 };

/** Functions keep the schema's old name in their search path. This updates it. */
const FOLLOW_RENAMED = `do $$ declare path_set regprocedure; begin
  for path_set in select oid from pg_proc where pronamespace = current_schema::regnamespace and proconfig is not null
    loop execute format('alter function %s set search_path from current', path_set); end loop; end $$`;

let server: PostgresServer | undefined;
let pool: Pool | undefined;
/** How many of the template's stores are unused. */
let ready = 0;
/** The statements that create a store's tables, after the first run. */
let creation: Promise<string> | undefined;
const schemas = new Set<string>();
/** Stores that were named but not yet created. */
const unmade = new Set<string>();

/** Starts the PostgreSQL server that all test files share, unless TEST_DATABASE_URL names another. */
export async function startPostgres(): Promise<void> {
  const given = process.env['TEST_DATABASE_URL'];
  if (given) {
    // Stores are reopened by their location, which does not include the password.
    process.env['PGPASSWORD'] ??= decodeURIComponent(new URL(given).password);
    return;
  }
  server = await startPostgresServer();
  // Inherited by mocha's workers and the programs that they start.
  process.env['TEST_DATABASE_URL'] = server.url;
  process.env['TEST_DATABASE_ENDS'] = 'yes';
  await makeTemplate();
}

export async function stopPostgres(): Promise<void> {
  await server?.stop();
}

/** Starts a PostgreSQL server, optionally on the data in a folder, which it keeps. */
export async function startPostgresServer(folder?: string): Promise<PostgresServer> {
  const child = spawn(process.execPath, [CHILD, ...(folder === undefined ? [] : [folder])], {
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
  });
  const line = String((await Promise.race([once(child.stdout, 'data'), once(child, 'exit')]))[0]);
  if (!line.startsWith('postgres://')) throw new Error('PostgreSQL did not start.');
  return {
    url: line.trim(),
    async stop() {
      child.stdin.end();
      await once(child, 'exit');
    },
  };
}

/**
 * Switches to a new database if ours has too few stores left. Copying the template takes as long as making the tables
 * of two stores, and databases with many tables are slow.
 */
export async function useDatabaseFor(stores: number): Promise<void> {
  if (!process.env['TEST_DATABASE_ENDS'] || ready >= Math.min(stores, TEMPLATE.stores)) return;
  const previous = databaseIn(process.env['TEST_DATABASE_URL']!);
  const name = `test_${randomBytes(8).toString('hex')}`;
  await ask(`create database ${name} template ${TEMPLATE.name} strategy file_copy`);
  await pool?.end();
  pool = undefined;
  process.env['TEST_DATABASE_URL'] = formatUrl(name);
  if (previous.startsWith('test_')) await ask(`drop database ${previous} with (force)`);
  ready = TEMPLATE.stores;
}

async function makeTemplate(): Promise<void> {
  const text = await recordCreation();
  await ask(`create database ${TEMPLATE.name}`);
  // A pool ends before its connection does, so a server that stops right then would cause an unhandled error.
  const template = new Client({ connectionString: formatUrl(TEMPLATE.name) });
  await template.connect();
  for (let index = 1; index <= TEMPLATE.stores; index += 1)
    await template.query(`create schema ready_${index}; set search_path = ready_${index}; ${text}`);
  await template.end();
}

function formatUrl(database: string): string {
  return Object.assign(new URL(process.env['TEST_DATABASE_URL']!), { pathname: `/${database}` }).href;
}

function databaseIn(url: string): string {
  return new URL(url).pathname.slice(1);
}

/** The URL of a new store, in its own schema. */
export function postgresStore(): string {
  const url = new URL(process.env['TEST_DATABASE_URL']!);
  const schema = `test_${randomBytes(8).toString('hex')}`;
  url.searchParams.set('schema', schema);
  schemas.add(schema);
  unmade.add(url.href);
  return url.href;
}

/** The URL of a store without keys, as after its first start. */
export async function migratedPostgresStore(): Promise<string> {
  const store = postgresStore();
  await migratePostgresStore(store);
  return store;
}

/** Creates a store that `postgresStore` has named, unless it exists. */
export async function migratePostgresStore(store: string): Promise<void> {
  if (!unmade.delete(store)) return;
  const { schema } = readPostgresUrl(store);
  const found = await askPostgres(store, `select 1 from pg_namespace where nspname = '${schema}'`);
  if (found.length > 0) return;
  if (ready > 0 && isInUse(store)) {
    await ask(`alter schema ready_${ready--} rename to ${schema}; set search_path = ${schema}; ${FOLLOW_RENAMED}`);
    return;
  }
  creation ??= recordCreation();
  await askPostgres(store, `create schema ${schema}; set search_path = ${schema}; ${await creation}`);
}

/** Queries the database of a store directly, as the URL's user. @returns the rows of the last statement */
export async function askPostgres(store: string, text: string): Promise<Record<string, unknown>[]> {
  const { schema = 'public', config } = readPostgresUrl(store);
  const statements = `set search_path = ${schema}; ${text}`;
  if (isInUse(store)) return ask(statements);
  const other = new Pool(config);
  try {
    return lastRows(await other.query(statements));
  } finally {
    await other.end();
  }
}

/** True if a store is in the current database and belongs to its user. */
function isInUse(store: string): boolean {
  const [{ username, pathname }, current] = [new URL(store), new URL(process.env['TEST_DATABASE_URL']!)];
  return username === current.username && pathname === current.pathname;
}

const SCHEMAS_AT_ONCE = 50;

/** Removes what the tests of a file left behind, unless the server ends anyway. */
export async function removePostgresStores(): Promise<void> {
  if (process.env['TEST_DATABASE_ENDS']) return;
  const names = [...schemas];
  schemas.clear();
  // Each schema has some 70 objects, which stay locked until the transaction ends.
  for (let first = 0; first < names.length; first += SCHEMAS_AT_ONCE)
    await ask(`drop schema if exists ${names.slice(first, first + SCHEMAS_AT_ONCE).join(', ')} cascade`);
}

/** Queries the current database over pooled connections that do not keep the process alive. */
async function ask(text: string): Promise<Record<string, unknown>[]> {
  pool ??= new Pool({ connectionString: process.env['TEST_DATABASE_URL'], max: 2, allowExitOnIdle: true }).on(
    'error',
    () => {},
  );
  return lastRows(await pool.query(text));
}

/** The driver returns an array for several statements, which its types omit. */
function lastRows(results: QueryResult | QueryResult[]): Record<string, unknown>[] {
  return [results].flat().at(-1)!.rows;
}

/** The statements of all migrations as one text, which runs in a third of the time. */
async function recordCreation(): Promise<string> {
  const { location, schema, config } = readPostgresUrl(postgresStore());
  const statements: string[] = [];
  const db = new Kysely<Tables>({
    dialect: new PostgresDialect({ pool: new Pool(config) }),
    log: ({ query: { sql, parameters } }) => {
      if (/^(create|alter|drop|insert|update) (?!schema)/i.test(sql))
        statements.push(
          sql.replaceAll(/\$(\d+)/g, (_, number) => escapeLiteral(String(parameters[Number(number) - 1]))),
        );
    },
  });
  await migratePostgres(db, { location, schema, features: STORES });
  await db.destroy();
  return statements.join(';\n');
}
