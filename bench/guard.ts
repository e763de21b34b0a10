import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LOAD_CORE, startServer } from './processes.ts';
import type { Row } from './rows.ts';
import type { BenchKey } from './stores.ts';
import { throughputTable } from './tables.ts';
import { measureThroughput, type Rounds } from './throughput.ts';
import { CHECKS } from './rows.ts';
import { CALL, SERVICE } from './workloads.ts';

const GUARD: Row = { title: '**`svc-api guard`**', server: 'guard', workloads: CHECKS };
/** The baseline. */
const BARE: Row = { title: 'twenty lines of node:http, open', server: 'proxy', workloads: CHECKS, isOpen: true };
const NGINX: Row = { title: 'nginx, `proxy_pass` alone, open', server: 'nginx', workloads: CHECKS, isOpen: true };
const UPSTREAM: Row = { title: 'the service', server: 'constant', workloads: CHECKS, cores: LOAD_CORE };

/** A configuration with a hundred services, and the credentials that replace the caller's key. */
const SWAPPED: Row = {
  ...GUARD,
  title: '**`svc-api guard`**, a credential of each',
  mode: 'swap',
  workloads: [SERVICE],
};
const UNCHECKED: Row = { ...SWAPPED, title: 'the same, open and without credentials', mode: 'open', isOpen: true };
const TOOLS: Row = { ...GUARD, title: '**`svc-api guard`**, by `mcp`', mode: 'mcp', workloads: [CALL] };
const NO_TOOLS: Row = { ...TOOLS, title: 'the same without `mcp`', mode: 'plain' };

/**
 * The cost of the guard compared with proxies that check nothing. The service behind them shares the load generator's
 * core.
 */
export function measureGuard(keys: readonly BenchKey[], folder: string, rounds: Rounds): Promise<string> {
  return inFrontOf(UPSTREAM, folder, async () =>
    throughputTable(await measureThroughput([GUARD, BARE, NGINX], keys, folder, rounds), CHECKS, BARE),
  );
}

/** The cost of checks and credentials for many services, and of decisions about MCP messages. */
export function measureUpstreams(keys: readonly BenchKey[], folder: string, rounds: Rounds): Promise<string> {
  return inFrontOf(UPSTREAM, folder, async () => {
    const tables: string[] = [];
    for (const [row, base] of [
      [SWAPPED, UNCHECKED],
      [TOOLS, NO_TOOLS],
    ] as const)
      tables.push(throughputTable(await measureThroughput([row, base], keys, folder, rounds), row.workloads, base));
    return tables.join('\n\n');
  });
}

async function inFrontOf(service: Row, folder: string, measure: () => Promise<string>): Promise<string> {
  const upstream = await startServer(service, folder);
  try {
    writeFileSync(portPath(folder), String(upstream.port));
    return await measure();
  } finally {
    await upstream.stop();
  }
}

/** The port of the service. */
export function upstreamPort(folder: string): number {
  return Number(readFileSync(portPath(folder), 'utf8'));
}

function portPath(folder: string): string {
  return join(folder, 'upstream-port');
}
