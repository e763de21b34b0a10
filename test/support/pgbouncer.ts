import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { accepts, freePort } from './port.ts';
import { AS_NOBODY } from './store-process.ts';
import { tempFolder } from './temp.ts';
import { until } from './until.ts';

/** A running PgBouncer. */
export interface PgBouncer {
  /** The URL of the store through PgBouncer. */
  url: string;
  stop(): Promise<void>;
}

/** The PATH in which Debian's package has the program. */
const ENV = { ...process.env, PATH: `${process.env['PATH']}:/usr/sbin` };

/** Starts PgBouncer in front of a store, with these settings and optionally on a fixed port. */
export async function startPgBouncer(store: string, settings: Record<string, string>, port = 0): Promise<PgBouncer> {
  const url = new URL(store);
  const server = { host: url.hostname, port: url.port, user: url.username, password: url.password };
  url.port = String(port || (await freePort()));
  const file = join(tempFolder(), 'pgbouncer.ini');
  const all = { listen_addr: url.hostname, listen_port: url.port, unix_socket_dir: '', auth_type: 'any', ...settings };
  const lines = (pairs: Record<string, string>) => Object.entries(pairs).map(([name, value]) => `${name}=${value}`);
  writeFileSync(file, `[databases]\n* = ${lines(server).join(' ')}\n[pgbouncer]\n${lines(all).join('\n')}\n`);
  // It refuses to run as root.
  chmodSync(join(file, '..'), 0o755);
  const child = spawn('pgbouncer', ['--quiet', file], {
    ...AS_NOBODY,
    env: ENV,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const ended = once(child, 'exit');
  await until(() => accepts(Number(url.port)));
  return {
    url: url.href,
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}
