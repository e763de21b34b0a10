import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Kysely, PostgresDialect } from 'kysely';
import { escapeLiteral, Pool, type QueryResult } from 'pg';
import { readPostgresUrl } from '../../src/store/postgres/postgres-address.ts';
import { migratePostgres } from '../../src/store/postgres/postgres-migrate.ts';
import type { Tables } from '../../src/store/tables.ts';

const CHILD = fileURLToPath(new URL('./postgres-child.ts', import.meta.url));

/** A PostgreSQL server of its own. */
export interface PostgresServer {
  url: string;
  stop(): Promise<void>;
}

let server: PostgresServer | undefined;
let pool: Pool | undefined;
/** What makes the tables of a store, once it is known. */
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
  const found = await ask(`select 1 from pg_namespace where nspname = '${schema}'`);
  if (found.length > 0) return;
  creation ??= recordCreation();
  await ask(`create schema ${schema}; set search_path = ${schema}; ${await creation}`);
}

/** Queries the database of a store directly, as the URL's user. @returns the rows of the last statement */
export async function askPostgres(store: string, text: string): Promise<Record<string, unknown>[]> {
  const { schema = 'public', config } = readPostgresUrl(store);
  const statements = `set search_path = ${schema}; ${text}`;
  if (new URL(store).username === new URL(process.env['TEST_DATABASE_URL']!).username) return ask(statements);
  const otherUser = new Pool(config);
  try {
    return lastRows(await otherUser.query(statements));
  } finally {
    await otherUser.end();
  }
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

/** Asks the server over connections that are kept, and do not keep the program. */
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

/** What the migrations ask to make the tables of a store, as one text: that takes a third of the time. */
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
  await migratePostgres(db, { location, schema });
  await db.destroy();
  return statements.join(';\n');
}
