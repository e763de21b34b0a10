import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Client } from 'pg';

const CHILD = fileURLToPath(new URL('./postgres-child.ts', import.meta.url));

let server: ChildProcess | undefined;
const schemas = new Set<string>();

/** Starts the PostgreSQL server that all test files share, unless TEST_DATABASE_URL names another. */
export async function startPostgres(): Promise<void> {
  const given = process.env['TEST_DATABASE_URL'];
  if (given) {
    // Stores are reopened by their location, which does not include the password.
    process.env['PGPASSWORD'] ??= decodeURIComponent(new URL(given).password);
    return;
  }
  server = spawn(process.execPath, [CHILD], { stdio: ['pipe', 'pipe', 'inherit'], detached: true });
  const line = String((await Promise.race([once(server.stdout!, 'data'), once(server, 'exit')]))[0]);
  if (!line.startsWith('postgres://')) throw new Error('PostgreSQL did not start.');
  // Mocha's workers and the programs that they start inherit it.
  process.env['TEST_DATABASE_URL'] = line.trim();
}

export async function stopPostgres(): Promise<void> {
  if (!server) return;
  server.stdin!.end();
  await once(server, 'exit');
}

/** The URL of a store that does not exist yet, in a schema of its own. */
export function postgresStore(): string {
  const url = new URL(process.env['TEST_DATABASE_URL']!);
  const schema = `test_${randomBytes(8).toString('hex')}`;
  url.searchParams.set('schema', schema);
  schemas.add(schema);
  return url.href;
}

/** Queries the database of a store directly. */
export async function askPostgres(store: string, text: string): Promise<Record<string, unknown>[]> {
  const url = new URL(store);
  const schema = url.searchParams.get('schema');
  url.search = '';
  const client = new Client({
    connectionString: url.href,
    ...(schema !== null && { options: `-c search_path=${schema}` }),
  });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
}

/** Removes what the tests of a file left behind. */
export async function removePostgresStores(): Promise<void> {
  const names = [...schemas];
  schemas.clear();
  for (const schema of names)
    await askPostgres(process.env['TEST_DATABASE_URL']!, `drop schema if exists ${schema} cascade`);
}
