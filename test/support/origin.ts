import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { FEED_COLUMNS } from '../../src/store/feed.ts';
import { USAGE } from '../../src/keys/key/usage.ts';
import type { ActivityReport } from '../../src/edge/feed-source.ts';
import type { LeaseRequest } from '../../src/limits/lease.ts';
import { readDirectly } from './direct.ts';
import type { TestKeys } from './keys.ts';

/** A small origin over the store of tests, which does what a test says. */
export interface Origin {
  readonly url: string;
  /** How many polls were answered, and how many snapshots. */
  readonly counts: { polls: number; snapshots: number };
  readonly reports: ActivityReport[];
  /** Answers each request before it is looked at; undefined answers as usual. */
  intercept: ((incoming: IncomingMessage, outgoing: ServerResponse) => boolean) | undefined;
  /** The lease that it gives, in milliseconds; undefined for what is asked for. */
  leaseMs: number | undefined;
  /** Wakes polls: something has changed. */
  changed(): void;
  stop(): Promise<void>;
}

const ROW = `json_array(${FEED_COLUMNS.join(', ')})`;

/** @param time the time that it says, in milliseconds since 1970 */
export async function startOrigin({ database, store, keys }: TestKeys, time: () => number): Promise<Origin> {
  const waiting = new Set<() => void>();
  const counts = { polls: 0, snapshots: 0 };
  const reports: ActivityReport[] = [];
  const head = async () => {
    const [row] = await readDirectly(database, 'select number, mark from key_changes order by number desc limit 1');
    return row ? `${String(row['number'])}.${String(row['mark'])}` : '0.';
  };
  const body = async (incoming: IncomingMessage) => {
    let text = '';
    for await (const piece of incoming) text += String(piece);
    return JSON.parse(text) as unknown;
  };
  const end = (outgoing: ServerResponse, lines: string[]) =>
    void outgoing
      .writeHead(200, { 'Content-Type': 'application/x-ndjson' })
      .end(lines.map((line) => `${line}\n`).join(''));
  const answer = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const url = new URL(incoming.url!, 'http://origin');
    if (url.pathname === '/feed/snapshot') {
      counts.snapshots += 1;
      const cursor = await head();
      const rows = await readDirectly(database, `select ${ROW} as line from api_keys`);
      return end(outgoing, [...rows.map(({ line }) => `+${String(line)}`), `=${JSON.stringify([cursor, 0, time()])}`]);
    }
    if (url.pathname === '/feed') {
      const after = url.searchParams.get('after')!;
      const [number, mark] = after.split('.') as [string, string];
      if (number !== '0') {
        const known = await readDirectly(database, `select mark from key_changes where number = ${number}`);
        if (known[0]?.['mark'] !== mark) return void outgoing.writeHead(410).end();
      }
      if ((await head()) === after && Number(url.searchParams.get('hold')) > 0)
        await new Promise<void>((resolve) => {
          waiting.add(resolve);
          setTimeout(resolve, Number(url.searchParams.get('hold'))).unref();
        });
      const cursor = await head();
      const changed = await readDirectly(database, `select distinct key_id from key_changes where number > ${number}`);
      const lines = [];
      for (const { key_id: id } of changed) {
        if (id === null || id === '') continue;
        const quoted = String(id).replaceAll("'", "''");
        const [row] = await readDirectly(database, `select ${ROW} as line from api_keys where id = '${quoted}'`);
        lines.push(row ? `+${String(row['line'])}` : `-${JSON.stringify([id])}`);
      }
      counts.polls += 1;
      const lease = origin.leaseMs ?? Number(url.searchParams.get('lease'));
      return end(outgoing, [...lines, `=${JSON.stringify([cursor, lease, time()])}`]);
    }
    if (url.pathname === '/feed/activity') {
      const report = (await body(incoming)) as ActivityReport;
      if (!reports.some(({ id }) => id === report.id))
        await store.repository.write((writer) => writer.port(USAGE).add(report.usage), {
          now: keys.clock(),
          counts: true,
        });
      reports.push(report);
      return void outgoing.writeHead(204).end();
    }
    const grants = await store.limits.lease((await body(incoming)) as LeaseRequest[]);
    return void outgoing.writeHead(200).end(JSON.stringify(grants.map((grant) => grant ?? null)));
  };
  const server = createServer((incoming, outgoing) => {
    if (origin.intercept?.(incoming, outgoing)) return;
    answer(incoming, outgoing).catch((error: unknown) => outgoing.destroy(error as Error));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin: Origin = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    counts,
    reports,
    intercept: undefined,
    leaseMs: undefined,
    changed: () => {
      for (const wake of waiting) wake();
      waiting.clear();
    },
    stop: async () => {
      origin.changed();
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return origin;
}
