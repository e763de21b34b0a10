import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LOAD_CORE, startServer } from './processes.ts';
import type { Row } from './rows.ts';
import type { BenchKey } from './stores.ts';
import { throughputTable } from './tables.ts';
import { measureThroughput, type Rounds } from './throughput.ts';
import { CHECKS } from './rows.ts';

const GUARD: Row = { title: '**`svc-api guard`**', server: 'guard', workloads: CHECKS };
/** The row that the others are compared with. */
const BARE: Row = { title: 'twenty lines of node:http, open', server: 'proxy', workloads: CHECKS, isOpen: true };
const NGINX: Row = { title: 'nginx, `proxy_pass` alone, open', server: 'nginx', workloads: CHECKS, isOpen: true };
const UPSTREAM: Row = { title: 'the service', server: 'constant', workloads: CHECKS, cores: LOAD_CORE };

/** What the guard costs beside proxies that check nothing, in front of one service on the core of the load. */
export async function measureGuard(keys: readonly BenchKey[], folder: string, rounds: Rounds): Promise<string> {
  const upstream = await startServer(UPSTREAM, folder);
  try {
    writeFileSync(portPath(folder), String(upstream.port));
    return throughputTable(await measureThroughput([GUARD, BARE, NGINX], keys, folder, rounds), CHECKS, BARE);
  } finally {
    await upstream.stop();
  }
}

/** Where the service listens. */
export function upstreamPort(folder: string): number {
  return Number(readFileSync(portPath(folder), 'utf8'));
}

function portPath(folder: string): string {
  return join(folder, 'upstream-port');
}
