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

/** A PostgreSQL server of its own. */
export interface PostgresServer {
  url: string;
  stop(): Promise<void>;
}

/** The database that those of tests are copies of, and how many stores without keys it has. */
const TEMPLATE = { name: 'template_of_stores', stores: 48 };

/** Functions that were made with the search path of that time keep the name that the schema had then. */
const FOLLOW_RENAMED = `do $$ declare path_set regprocedure; begin
  for path_set in select oid from pg_proc where pronamespace = current_schema::regnamespace and proconfig is not null
    loop execute format('alter function %s set search_path from current', path_set); end loop; end $$`;

let server: PostgresServer | undefined;
let pool: Pool | undefined;
/** How many of those stores no test has used. */
let ready = 0;
/** The statements that make the tables of a store, once they are known. */
let creation: Promise<string> | undefined;
const schemas = new Set<string>();
/** Those of them that nothing has made yet, as far as is known. */
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
  // Mocha's workers and the programs that they start inherit it.
  process.env['TEST_DATABASE_URL'] = server.url;
  process.env['TEST_DATABASE_ENDS'] = 'yes';
  await makeTemplate();
}

export async function stopPostgres(): Promise<void> {
  await server?.stop();
}

/** Starts a PostgreSQL server, on the data in a folder if one is given, which it then keeps. */
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
 * Gives the stores that are named from now on another database, if the server is ours, and the one in use has fewer
 * stores left than are needed. To copy one with all of them takes as long as making the tables of two; and the more a
 * database has, the longer everything takes there.
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
  // A pool would end before its connection does, which a server that is stopped at once would tell nobody.
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

/** The URL of a store that does not exist yet, in a schema of its own. */
export function postgresStore(): string {
  const url = new URL(process.env['TEST_DATABASE_URL']!);
  const schema = `test_${randomBytes(8).toString('hex')}`;
  url.searchParams.set('schema', schema);
  schemas.add(schema);
  unmade.add(url.href);
  return url.href;
}

/** The URL of a store without keys, as its first start leaves it. */
export async function migratedPostgresStore(): Promise<string> {
  const store = postgresStore();
  await migratePostgresStore(store);
  return store;
}

/** Makes a store that `postgresStore` has named, unless it is there. */
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

/** True if a store is in the database where stores are named now, and has its user. */
function isInUse(store: string): boolean {
  const [{ username, pathname }, current] = [new URL(store), new URL(process.env['TEST_DATABASE_URL']!)];
  return username === current.username && pathname === current.pathname;
}

const SCHEMAS_AT_ONCE = 50;

/** Removes what the tests of a file left behind, unless that ends with the server. */
export async function removePostgresStores(): Promise<void> {
  if (process.env['TEST_DATABASE_ENDS']) return;
  const names = [...schemas];
  schemas.clear();
  // Each has some 70 tables, indexes and other objects, all of which are locked until its transaction ends.
  for (let first = 0; first < names.length; first += SCHEMAS_AT_ONCE)
    await ask(`drop schema if exists ${names.slice(first, first + SCHEMAS_AT_ONCE).join(', ')} cascade`);
}

/** Asks the database in use over connections that are kept, and do not keep the program. */
async function ask(text: string): Promise<Record<string, unknown>[]> {
  pool ??= new Pool({ connectionString: process.env['TEST_DATABASE_URL'], max: 2, allowExitOnIdle: true }).on(
    'error',
    () => {},
  );
  return lastRows(await pool.query(text));
}

/** The driver answers several statements with several results, which its types do not tell. */
function lastRows(results: QueryResult | QueryResult[]): Record<string, unknown>[] {
  return [results].flat().at(-1)!.rows;
}

/** The statements of the migrations that make a store's tables, as one text: that takes a third of the time. */
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
