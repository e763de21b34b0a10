import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { postgresPath, storePath } from './stores.ts';

const SERVER = fileURLToPath(new URL('../test/support/postgres-child.ts', import.meta.url));
const CLI = fileURLToPath(new URL('../bin/run.js', import.meta.url));

/** Starts a PostgreSQL server with its default settings, for the duration of `work`. */
export async function withPostgres<Result>(work: (url: string) => Promise<Result>): Promise<Result> {
  const server = spawn(process.execPath, [SERVER, 'durable'], { stdio: ['pipe', 'pipe', 'inherit'] });
  try {
    const [line] = (await Promise.race([once(server.stdout, 'data'), once(server, 'exit')])) as [unknown];
    if (!String(line).startsWith('postgres://')) throw new Error('PostgreSQL did not start.');
    return await work(String(line).trim());
  } finally {
    server.stdin.end();
    if (server.exitCode === null) await once(server, 'exit');
  }
}

/** Copies the store of a folder into a PostgreSQL server, for the duration of `work`. */
export function withCopy<Result>(folder: string, work: () => Promise<Result>): Promise<Result> {
  return withPostgres(async (url) => {
    writeFileSync(postgresPath(folder), (await copyInto(url, 'copy', storePath(folder))).url);
    return work();
  });
}

/** Copies a store into a new schema, as a user would. @returns its URL, and the duration in seconds */
export async function copyInto(
  url: string,
  schema: string,
  database: string,
): Promise<{ url: string; seconds: number }> {
  const to = new URL(url);
  to.searchParams.set('schema', schema);
  const start = performance.now();
  execFileSync(process.execPath, [CLI, 'apikey', 'export', '--database', database, '--to', to.href], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return { url: to.href, seconds: (performance.now() - start) / 1000 };
}
