import { spawn } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type FeedSource, HttpFeed, openEdgeStore } from '../src/features/edge/index.ts';
import { OPERATOR } from '../src/keys/authorization/principal.ts';
import { NO_LOG } from '../src/log.ts';
import { connectTo, type NatsAsk } from '../src/features/nats/connection.ts';
import { NatsFeed } from '../src/features/nats/nats-feed.ts';
import { openTestKeys } from '../test/support/keys.ts';
import { startNats, stopNats } from '../test/support/nats.ts';
import { freePort } from '../test/support/port.ts';
import { removeTempFolders, tempFolder } from '../test/support/temp.ts';
import { until } from '../test/support/until.ts';
import { importKeys } from '../test/features/transfer/support/import-keys.ts';

/**
 * Measures the costs of a feed through NATS: `npm run nats:costs -- <keys> <changes> <idle edges> <idle seconds>`. The
 * origin and nats-server are separate processes; this one makes the changes, like a command.
 */
const [KEYS = 100_000, CHANGES = 1000, IDLE_EDGES = 10, IDLE_S = 30] = process.argv.slice(2).map(Number);
const [LEASE_MS, BUCKET] = [1000, 'KV_svc-api-keys'];
const show = (what: string, value: unknown) => process.stdout.write(`${what}: ${JSON.stringify(value)}\n`);
const ms = (value: number) => Math.round(value * 100) / 100;

/** The CPU time of all threads of a process, in milliseconds. */
function cpuOf(pid: number): number {
  const tasks = readdirSync(`/proc/${pid}/task`);
  const times = tasks.map((task) => Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]));
  return times.reduce((sum, each) => sum + each, 0) / 1e6;
}

function percentiles(times: number[]): object {
  const sorted = times.toSorted((one, other) => one - other);
  const at = (part: number) => ms(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]!);
  return { p50: at(0.5), p99: at(0.99), max: at(1) };
}

/** Forwards connections, and counts the bytes from the target. */
async function counting(target: number): Promise<{ port: number; bytes: { in: number; out: number } }> {
  const bytes = { in: 0, out: 0 };
  const server = createServer({ noDelay: true }, (socket) => {
    const there = connect({ port: target, host: '127.0.0.1', noDelay: true });
    there.on('data', (piece) => (bytes.in += piece.length)).on('error', () => socket.destroy());
    socket.on('data', (piece) => (bytes.out += piece.length)).on('error', () => there.destroy());
    socket.pipe(there).pipe(socket);
  });
  const port = await freePort();
  server.listen(port, '127.0.0.1').unref();
  await once(server, 'listening');
  return { port, bytes };
}

const children: ReturnType<typeof spawn>[] = [];
const program = async (...args: string[]) => {
  const child = spawn(process.execPath, ['bin/run.js', ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, LOG_LEVEL: 'error' },
  });
  children.push(child);
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  return { pid: child.pid!, url: /http:\S+/.exec(line.toString())![0] };
};

const nats = await startNats();
const { nats: library, connection } = await connectTo({ servers: [nats.url], credentials: undefined, name: 'svc-api' });
const manager = await library.jetstreamManager(connection);
const stream = async () => (await manager.streams.info(BUCKET).catch(() => undefined))?.state;
const test = await openTestKeys();
test.time.now = Date.now();
const lines = Array.from({ length: KEYS }, (_, index) =>
  JSON.stringify({
    name: `Key ${index}`,
    roles: ['VIEWER'],
    sha256: createHash('sha256').update(`${index}`).digest('hex'),
  }),
);
await importKeys(
  test.keys,
  (async function* () {
    yield Buffer.from(`${lines.join('\n')}\n`);
  })() as never,
);
const { key: token } = await test.keys.create({ name: 'Edge', permissions: ['EDGE:READ_ANY'] }, OPERATOR);
const folder = tempFolder();
const config = join(folder, 'svc-api.yaml');
writeFileSync(config, `feed: { nats: { servers: ['${nats.url}'] } }\n`, { mode: 0o600 });
writeFileSync(join(folder, 'key'), token, { mode: 0o600 });

const [natsBefore, began] = [cpuOf(nats.pid), performance.now()];
const { pid: origin, url: originUrl } = await program(
  'serve',
  '--port',
  '0',
  '--config',
  config,
  '--database',
  test.database,
);
await until(async () => ((await stream())?.messages ?? 0) > KEYS + 1);
const seconds = (performance.now() - began) / 1000;
const filled = (await stream())!;
show('keys published', {
  keys: KEYS,
  seconds: ms(seconds),
  keysPerSecond: Math.round(KEYS / seconds),
  originCpuMs: ms(cpuOf(origin)),
  natsCpuMs: ms(cpuOf(nats.pid) - natsBefore),
});
show('stream', { messages: filled.messages, bytesPerKey: ms(filled.bytes / filled.messages) });

const { apiKey } = await test.keys.create({ name: 'Changed', roles: ['VIEWER'] }, OPERATOR);
for (const way of ['NATS', 'HTTP'] as const) {
  const wire = await counting(way === 'NATS' ? nats.port : Number(new URL(originUrl).port));
  const at = `127.0.0.1:${wire.port}`;
  const settings = { servers: [`nats://${at}`], credentials: undefined, name: 'svc-api' };
  const feed: FeedSource =
    way === 'NATS'
      ? new NatsFeed({ settings, token, log: NO_LOG, leaseMs: LEASE_MS })
      : new HttpFeed({ origin: `http://${at}`, token, leaseMs: LEASE_MS, log: NO_LOG });
  let applied = Promise.withResolvers<number>();
  const source: FeedSource = {
    origin: feed.origin,
    snapshot: (signal) => feed.snapshot(signal),
    follow: (cursor, take, watch) =>
      feed.follow(
        cursor,
        async (taken, askedAt) => {
          const next = await take(taken, askedAt);
          if (taken[0] === 0x2b) applied.resolve(performance.now());
          return next;
        },
        watch,
      ),
    reportActivity: (report) => feed.reportActivity(report),
    leave: () => feed.leave(),
    lease: (requests) => feed.lease(requests),
    close: () => feed.close(),
  };
  const [loading, cpu] = [performance.now(), process.cpuUsage()];
  const before = [cpuOf(origin), cpuOf(nats.pid)] as const;
  const edge = await openEdgeStore(source, { idleMs: Infinity });
  const used = process.cpuUsage(cpu);
  show(`${way}: a new edge`, {
    keys: edge.state().keys,
    seconds: ms((performance.now() - loading) / 1000),
    wireBytesPerKey: ms(wire.bytes.in / KEYS),
    edgeCpuMs: ms((used.user + used.system) / 1000),
    originCpuMs: ms(cpuOf(origin) - before[0]),
    natsCpuMs: ms(cpuOf(nats.pid) - before[1]),
    tableBytesPerKey: ms(edge.state().tableBytes / KEYS),
  });
  const [toApplied, toReturned]: [number[], number[]] = [[], []];
  const [wireBefore, streamBefore] = [{ ...wire.bytes }, (await stream())!];
  const cpuBefore = [cpuOf(origin), cpuOf(nats.pid)] as const;
  for (let index = 0; index < CHANGES; index += 1) {
    applied = Promise.withResolvers();
    const start = performance.now();
    await test.keys.setEnabled(apiKey.id, index % 2 === 1, OPERATOR);
    toReturned.push(performance.now() - start);
    toApplied.push((await applied.promise) - start);
  }
  show(`${way}: changes, each made and returned, to one edge, in ms`, {
    toApplied: percentiles(toApplied),
    toReturned: percentiles(toReturned),
  });
  show(`${way}: per change`, {
    wireBytesToEdge: ms((wire.bytes.in - wireBefore.in) / CHANGES),
    wireBytesFromEdge: ms((wire.bytes.out - wireBefore.out) / CHANGES),
    streamEntries: ms(((await stream())!.last_seq - streamBefore.last_seq) / CHANGES),
    streamBytesGrowth: ms(((await stream())!.bytes - streamBefore.bytes) / CHANGES),
    originCpuMs: ms((cpuOf(origin) - cpuBefore[0]) / CHANGES),
    natsCpuMs: ms((cpuOf(nats.pid) - cpuBefore[1]) / CHANGES),
  });
  await edge.close();
  // The next change would wait for the lease.
  await delay(2 * LEASE_MS);
}
const alone: number[] = [];
for (let index = 0; index < CHANGES; index += 1) {
  const start = performance.now();
  await test.keys.setEnabled(apiKey.id, index % 2 === 1, OPERATOR);
  alone.push(performance.now() - start);
}
show('the same without an edge, in ms', percentiles(alone));

const ids = Array.from({ length: 1000 }, () => randomUUID());
const ask = async (edge: string, after: string, leaseMs: number) => {
  const asked = { edge, name: 'x', after, known: after, leaseMs, restMs: 0 } satisfies NatsAsk;
  const message = JSON.stringify({ ...asked, token });
  const answer = await connection.request('svc-api.feed.ask', message, { timeout: 10_000 });
  const { position } = answer.json<{ position?: string }>();
  if (position === undefined) throw new Error(answer.string());
  return { position };
};
const { position } = await ask(ids[0]!, '', 0);
for (const width of [1, 1, 100, 1000]) {
  const rounds = Math.ceil(4000 / width);
  const before = [cpuOf(origin), cpuOf(nats.pid), performance.now()] as const;
  for (let round = 0; round < rounds; round += 1)
    await Promise.all(
      Array.from({ length: width }, (_, index) => ask(ids[(round * width + index) % ids.length]!, position, 2000)),
    );
  const count = rounds * width;
  show(`asks of 1,000 edges, ${width} at a time`, {
    perSecond: Math.round((count / (performance.now() - before[2])) * 1000),
    originCpuMs: ms((cpuOf(origin) - before[0]) / count),
    natsCpuMs: ms((cpuOf(nats.pid) - before[1]) / count),
  });
}

for (const [edges, lease] of [
  [0, '1s'],
  [IDLE_EDGES, '1s'],
  [IDLE_EDGES, '10s'],
] as const) {
  for (let index = 0; index < edges; index += 1)
    await program('edge', '--port', '0', '--config', config, '--token-file', join(folder, 'key'), '--max-stale', lease);
  // The edges rest by then.
  await delay(15_000);
  const before = [cpuOf(origin), cpuOf(nats.pid)] as const;
  await delay(IDLE_S * 1000);
  const per = (value: number) => ms(value / IDLE_S);
  show(`CPU ms per second with ${edges} edges that nobody asks for keys, --max-stale ${lease}`, {
    origin: per(cpuOf(origin) - before[0]),
    nats: per(cpuOf(nats.pid) - before[1]),
  });
  for (const child of children.splice(1)) {
    child.kill();
    await once(child, 'exit');
  }
}
for (const child of children) child.kill();
await connection.close();
await test.store.close();
await stopNats();
removeTempFolders();
process.exit(0);
