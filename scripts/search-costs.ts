import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { FEATURES } from '../src/features/index.ts';
import { createSchema } from '../src/graphql/schema.ts';
import { createApp } from '../src/index.ts';
import { REQUESTS } from '../src/features/apply/requests.ts';
import { openKeys } from '../src/service/open-keys.ts';
import { costlyDocument, operationNameIn } from '../test/support/costly-document.ts';
import { costlyQuery } from '../test/support/costly-query.ts';
import { keyedRequest } from '../test/support/keyed-requests.ts';
import { type Caller, largeStore } from '../test/support/large-store.ts';

import { Random } from '../test/support/random.ts';
import { startAttacked, type StrangerRequest, strangerRequest, TRIVIAL } from '../test/support/strangers.ts';
import { removeTempFolders } from '../test/support/temp.ts';

/**
 * `npm run search:costs [seed] [requests]`: searches for the most expensive request to a store of 30,000 keys and
 * 100,000 audit entries, and fails if one takes more than a request is allowed. Every second document attacks
 * validation. It then declares 1,000 keys, and widens them, also with as many networks as possible; searches requests
 * without a valid key, on all endpoints that answer those, for one that takes more than next to nothing; and finally
 * tests requests with a valid key on each endpoint that reads a body: MCP behind a guard, OAuth, forward-auth, the
 * console and the feed.
 */
const MAX_CPU_MS = 250;
const MAX_STRANGER_MS = 2;
/**
 * A request that is accepted is also a transaction on disk, in a thread of its own, for which the system does more on a
 * slow disk. Such requests are rate-limited by address and network.
 */
const TAKEN = { all: 2.5, answering: 1.75 };
const ASKS: StrangerRequest = {
  to: 'service',
  method: 'POST',
  path: '/oauth/device_authorization',
  headers: ['X-Forwarded-For', 'ADDRESS', 'Content-Type', 'application/x-www-form-urlencoded'],
  body: 'client_id=grafana-sync&scope=DOCKER%3AREAD_ANY',
};
/** The cost of a health check on an otherwise idle machine. */
const USUAL_TRIVIAL_MS = 0.15;
/** How many keys are declared at once, and how often. */
const [DECLARED, APPLIES] = [1000, 10];
/** The networks of each key: with more, the request would exceed its allowed cost. */
const NETWORKS = 26;
/** How often a request is sent for one measurement, since once is too short to measure. */
const STRANGER_TIMES = 5;
const MAX_WAIT_MS = 50;
const MAX_MEMORY = 64_000_000;

const [seed = 1, count = 2000] = process.argv.slice(2).map(Number);
const { path, secrets } = await largeStore();
const keys = await openKeys({ database: path });
const app = await createApp({ keys });
const schema = await createSchema(keys, { name: 'x', version: '1', startedAt: 0 }, { features: FEATURES });
const server = createServer(getRequestListener(app.fetch));
await new Promise<void>((resolve) => {
  server.listen(0, '127.0.0.1', resolve);
});
const { port } = server.address() as AddressInfo;

interface Measured {
  query: string;
  cpuMs: number;
  /** The longest time without a turn for other requests. */
  waitMs: number;
  memory: number;
  refused: boolean;
}

const random = new Random(seed);
const measured: Measured[] = [];
for (let index = 0; index < count; index += 1) {
  const caller = random.pick<Caller>(['ADMIN', 'ADMIN', 'VIEWER', 'GUEST']);
  const query = index % 2 === 0 ? costlyQuery(schema, random) : costlyDocument(random);
  let best = await measure(caller, query);
  // Other programs also use the machine, so values over a limit are measured again.
  for (let again = 0; again < 4 && exceeds(best); again += 1) best = least(best, await measure(caller, query));
  measured.push(best);
}
report(measured, 'CPU', 'ms', MAX_CPU_MS, ({ cpuMs }) => cpuMs);
report(measured, 'wait of others', 'ms', MAX_WAIT_MS, ({ waitMs }) => waitMs);
report(measured, 'memory', 'bytes', MAX_MEMORY, ({ memory }) => memory);
process.stdout.write(`${measured.filter(({ refused }) => refused).length} of ${count} requests were refused\n`);
const applied: Measured[] = [];
const APPLY = REQUESTS.applyApiKeys.documentFor({ input: {} });
for (const [what, change] of Object.entries({ created, widened, createdWide, widenedWide })) {
  let best = await measure('ADMIN', APPLY, change(0));
  for (let round = 1; round < APPLIES; round += 1) best = least(best, await measure('ADMIN', APPLY, change(round)));
  if (best.refused) throw new Error('What was declared was refused.');
  applied.push({ ...best, query: `${DECLARED} keys, ${what}` });
}
for (const each of applied) {
  report([each], 'CPU of an apply', 'ms', MAX_CPU_MS, ({ cpuMs }) => cpuMs);
  report([each], 'wait of others for it', 'ms', MAX_WAIT_MS, ({ waitMs }) => waitMs);
}
server.close();
server.closeAllConnections();
await keys.close();

const { strangers, holder, stop } = await startAttacked();
// Warms up the code, as in a server that has run for a while.
await strangers.cpuOf(TRIVIAL, 2000);
await strangers.cpuOf(ASKS, 300);
// If this takes longer than usual, other programs use the machine, and everything else takes longer, too.
const strangerMs = MAX_STRANGER_MS * Math.max(1, (await strangers.cpuOf(TRIVIAL, 500)).cpuMs / USUAL_TRIVIAL_MS);
const asked: { query: string; cpuMs: number; threadMs: number; status: number | string }[] = [];
for (let index = 0; index < count; index += 1) {
  const stranger = strangerRequest(random);
  let least = await strangers.cpuOf(stranger, STRANGER_TIMES);
  for (let again = 0; again < 9 && least.cpuMs > strangerMs / 2; again += 1) {
    const measuredAgain = await strangers.cpuOf(stranger, STRANGER_TIMES);
    if (measuredAgain.cpuMs < least.cpuMs) least = measuredAgain;
  }
  asked.push({ query: JSON.stringify(stranger), ...least });
}
const isTaken = ({ query, status }: { query: string; status: number | string }) =>
  status === 200 && /"\/oauth\/(?:device_authorization|authorize)\b/.test(query);
const { true: taken = [], false: others = [] } = Object.groupBy(asked, (one) => String(isTaken(one)));
report(others, 'CPU without a key', 'ms', strangerMs, ({ cpuMs }) => cpuMs);
report(taken, 'CPU of a request for a key', 'ms', strangerMs * TAKEN.all, ({ cpuMs }) => cpuMs);
report(taken, 'CPU of it in the thread that answers', 'ms', strangerMs * TAKEN.answering, ({ threadMs }) => threadMs);
const statuses = Object.entries(Object.groupBy(asked, ({ status }) => String(status)));
process.stdout.write(`${statuses.map(([status, all]) => `${all!.length} were answered ${status}`).join(', ')}\n`);
const byHolder: Measured[] = [];
for (let index = 0; index < count; index += 1) {
  const asked = keyedRequest(random, holder);
  const sendIt = async () => String(await strangers.send(asked));
  let best = await measureSending(describe(asked), sendIt);
  for (let again = 0; again < 4 && exceeds(best); again += 1)
    best = least(best, await measureSending(describe(asked), sendIt));
  byHolder.push(best);
}
for (const [door, all] of Object.entries(Object.groupBy(byHolder, ({ query }) => query.split(' ')[1]!))) {
  report(all!, `CPU with a key at ${door}`, 'ms', MAX_CPU_MS, ({ cpuMs }) => cpuMs);
  report(all!, `wait of others for ${door}`, 'ms', MAX_WAIT_MS, ({ waitMs }) => waitMs);
}
await stop();
removeTempFolders();

/** A request in short, since its body can be long, with its endpoint. */
function describe({ method, path, body = '' }: StrangerRequest): string {
  const [door = 'others'] =
    /^\/(?:mcp|graphql|introspect|device|oauth|auth|console|feed|leaks)\b(?:\/\w+)?/.exec(path) ?? [];
  return `${method} ${door} ${path.slice(0, 100)} ${body.length} bytes: ${body}`;
}

function report<One extends { query: string }>(
  all: readonly One[],
  what: string,
  unit: string,
  limit: number,
  of: (one: One) => number,
): void {
  const worst = all.reduce((one, other) => (of(other) > of(one) ? other : one));
  const isFine = of(worst) <= limit;
  if (!isFine) process.exitCode = 1;
  const [figure, most] = [of(worst), limit].map((number) =>
    number.toLocaleString('en', { maximumFractionDigits: limit < 10 ? 2 : 0 }),
  );
  const query = worst.query.slice(0, isFine ? 100 : 2000);
  process.stdout.write(`${isFine ? 'ok' : 'TOO MUCH'}: ${what}: ${figure} ${unit}, at most ${most}: ${query}\n`);
}

/** Declares new keys with grants, a limit and a network. */
function created(round: number): object {
  const permissions = [{ resource: 'DOCKER', actions: ['READ_ANY'] }];
  return declarationOf(round, { roles: ['GUEST'], permissions, limits: ['100/m'], allowFrom: ['10.1.0.0/16'] });
}

/** Widens those keys in each respect. */
function widened(round: number): object {
  const permissions = [{ resource: 'DOCKER', actions: ['READ_ANY', 'UPDATE_ANY'] }];
  const allowFrom = ['10.0.0.0/8', '2001:db8::/32'];
  return declarationOf(round, { roles: ['GUEST', 'VIEWER'], permissions, limits: ['200/m'], allowFrom });
}

/** Declares new keys with as many networks as fit into a request for this many keys. */
function createdWide(round: number): object {
  return declarationOf(APPLIES + round, { roles: ['GUEST'], limits: ['100/m'], allowFrom: networksFrom(0) });
}

/** Replaces the networks of those keys by as many others outside them. */
function widenedWide(round: number): object {
  return declarationOf(APPLIES + round, { roles: ['VIEWER'], limits: ['200/m'], allowFrom: networksFrom(NETWORKS) });
}

function networksFrom(first: number): string[] {
  return Array.from({ length: NETWORKS }, (_, index) => `2001:db8:${first + index}:1:2:3:4:5`);
}

function declarationOf(round: number, fields: object): object {
  const nameOf = (index: number) => `Declared ${round} ${index}`;
  return { input: { keys: Array.from({ length: DECLARED }, (_, index) => ({ name: nameOf(index), ...fields })) } };
}

function exceeds({ cpuMs, waitMs, memory }: Measured): boolean {
  return cpuMs > MAX_CPU_MS || waitMs > MAX_WAIT_MS || memory > MAX_MEMORY;
}

function least(one: Measured, other: Measured): Measured {
  return {
    ...one,
    cpuMs: Math.min(one.cpuMs, other.cpuMs),
    waitMs: Math.min(one.waitMs, other.waitMs),
    memory: Math.min(one.memory, other.memory),
  };
}

function measure(caller: Caller, query: string, variables: object = {}): Promise<Measured> {
  return measureSending(query, () => post(caller, query, variables));
}

async function measureSending(query: string, send: () => Promise<string>): Promise<Measured> {
  let waitMs = 0;
  let last = performance.now();
  let running = true;
  const turn = () => {
    const now = performance.now();
    waitMs = Math.max(waitMs, now - last);
    last = now;
    // Turns without a pause would use CPU while another thread writes.
    if (running) setTimeout(turn, 1);
  };
  setTimeout(turn, 1);
  const [cpu, memory] = [process.cpuUsage(), process.memoryUsage.rss()];
  const text = await send();
  turn();
  running = false;
  const { user, system } = process.cpuUsage(cpu);
  return {
    query,
    cpuMs: (user + system) / 1000,
    waitMs,
    memory: process.memoryUsage.rss() - memory,
    refused: text.startsWith('{"errors"') && !/"data":\{(?!"applyApiKeys":null)/.test(text),
  };
}

function post(caller: Caller, query: string, variables: object): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${secrets[caller]}`, 'content-type': 'application/json' };
    const sent = request({ port, host: '127.0.0.1', path: '/graphql', method: 'POST', headers }, (reply) => {
      let text = '';
      reply.setEncoding('utf8').on('data', (part: string) => (text += part));
      reply.on('end', () => resolve(text));
    });
    sent.on('error', reject);
    sent.end(JSON.stringify({ query, variables, operationName: operationNameIn(query) }));
  });
}
