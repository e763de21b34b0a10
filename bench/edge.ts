import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { Agent, get, type IncomingMessage } from 'node:http';
import { hash, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { FeedLines } from '../src/features/edge/feed-lines.ts';
import { KeyTable } from '../src/features/edge/key-table.ts';
import { OPERATOR } from '../src/keys/authorization/index.ts';
import { openKeys } from '../src/service/open-keys.ts';
import { figure, table } from './figures.ts';
import { withFolder } from './stores.ts';

const BIN = fileURLToPath(new URL('../bin/run.js', import.meta.url));
const PIECE_KEYS = 500;
const LOOKS = 100_000;
const MANY_EDGES = 400;
const ASKS_A_SECOND = 2;
/** How many seconds the origin is observed. */
const IDLE_SECONDS = 20;

const digestOf = (secret: string) => hash('sha256', secret, 'base64url');

/** A line of the feed for a typical key. */
function lineOf(index: number): string {
  const others = [null, null, null, '["VIEWER"]', '[]', randomUUID().slice(0, 12), 1_700_000_000_000 + index];
  const rest = [null, null, null, null, null, null, 0, null, null, null, null, null, 'abcdefghijk'];
  return `+${JSON.stringify([randomUUID(), digestOf(`${index}`), null, `Key ${index}`, ...others, ...rest])}\n`;
}

/** The memory of a table with this many keys, and the time to find one. */
async function measureTable(keys: number): Promise<(readonly [string, string])[]> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  collect();
  const heapBefore = process.memoryUsage().heapUsed;
  const keyTable = new KeyTable();
  const lines = new FeedLines(keyTable);
  let cpuUs = 0;
  for (let first = 0; first < keys; first += PIECE_KEYS) {
    const piece = Array.from({ length: Math.min(PIECE_KEYS, keys - first) }, (_, index) => lineOf(first + index));
    const bytes = Buffer.from(piece.join(''));
    const before = process.cpuUsage();
    await lines.take(bytes);
    const { user, system } = process.cpuUsage(before);
    cpuUs += user + system;
  }
  collect();
  const bytes = (process.memoryUsage().heapUsed - heapBefore) / keys;
  const look = (digests: readonly string[]) => {
    const before = process.cpuUsage();
    for (const digest of digests) keyTable.findByDigest(digest);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / digests.length;
  };
  const unknown = look(Array.from({ length: LOOKS }, (_, index) => digestOf(`unknown ${index}`)));
  const known = look(Array.from({ length: LOOKS }, () => digestOf(`${Math.floor(Math.random() * keys)}`)));
  return [
    ['keys', figure(keys)],
    ['loading them, s of CPU', figure(cpuUs / 1e6, 1)],
    ['memory of a key, bytes', figure(bytes, 1)],
    ['an unknown secret, µs beside its hash', figure(unknown, 1)],
    ['a key that was not used before, µs, with parsing its row', figure(known, 1)],
  ];
}

/** Starts a program, and waits until it listens. */
async function listening(args: readonly string[]) {
  const child = spawn(process.execPath, [BIN, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  return { child, url: /http\S+/.exec(String(line))![0] };
}

/** The CPU time of a process, in milliseconds per second. */
async function cpuOf(pid: number): Promise<number> {
  const ticks = () => {
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]!.split(' ');
    return Number(fields[11]) + Number(fields[12]);
  };
  const before = ticks();
  await delay(IDLE_SECONDS * 1000);
  return ((ticks() - before) * 10) / IDLE_SECONDS;
}

/** Polls like this many edges with a lease of a second. @returns a controller that stops it */
function followByAsking(url: string, secret: string, edges: number): AbortController {
  const ended = new AbortController();
  const agent = new Agent({ keepAlive: true });
  const ask = async (path: string) => {
    const asked = get(url + path, { agent, signal: ended.signal, headers: { authorization: `Bearer ${secret}` } });
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    const lines = Buffer.concat(await answer.toArray())
      .toString()
      .trimEnd()
      .split('\n');
    return (JSON.parse(lines.at(-1)!.slice(1)) as [string])[0];
  };
  const follow = async (first: string) => {
    const edge = randomUUID();
    for (let after = first; ;)
      after = await ask(`/feed?${String(new URLSearchParams({ after, edge, name: 'bench', lease: '1000' }))}`);
  };
  const begin = async () => {
    const first = await ask('/feed/snapshot');
    for (let index = 0; index < edges; index += 1) void follow(first).catch(() => {});
  };
  void begin();
  return ended;
}

/** Waits until all edges of a store rest. */
async function resting(database: string, edges: number): Promise<void> {
  const args = [BIN, 'doctor', '--database', database, '--json'];
  for (;;) {
    const { checks } = JSON.parse(execFileSync(process.execPath, args).toString()) as {
      checks: { items?: { isResting?: boolean }[] }[];
    };
    const atRest = checks.flatMap(({ items = [] }) => items).filter(({ isResting }) => isResting);
    if (atRest.length === edges) return;
    await delay(500);
  }
}

/** Sends a request for a key to each edge every second. @returns the timer to stop it */
function askForKeys(urls: readonly string[], secret: string): NodeJS.Timeout {
  const headers = { authorization: `Bearer ${secret}` };
  const ask = async (url: string) => {
    const body = new URLSearchParams({ token: secret });
    const answer = await fetch(`${url}/introspect`, { method: 'POST', headers, body });
    if (!((await answer.json()) as { active?: boolean }).active) throw new Error('the key was not accepted');
  };
  return setInterval(() => {
    for (const url of urls) void ask(url);
  }, 1000);
}

/** The load that edges put on their origin, idle or not. */
function measureFollowing(edges: number): Promise<(readonly [string, string])[]> {
  return withFolder(async (folder) => {
    const database = join(folder, 'keys.sqlite');
    const keys = await openKeys({ database });
    const { key: secret } = await keys.create(
      { name: 'Edge', permissions: ['EDGE:READ_ANY', 'API_KEY:READ_ANY'] },
      OPERATOR,
    );
    await keys.close();
    const tokenFile = join(folder, 'edge.key');
    writeFileSync(tokenFile, secret, { mode: 0o600 });
    const origin = await listening(['serve', '--database', database, '--port', '0']);
    const running = [origin];
    const { pid } = origin.child;
    try {
      const alone = await cpuOf(pid!);
      for (let index = 0; index < edges; index += 1)
        running.push(await listening(['edge', '--origin', origin.url, '--token-file', tokenFile, '--port', '0']));
      await resting(database, edges);
      const rested = await cpuOf(pid!);
      const asking = askForKeys(
        running.slice(1).map(({ url }) => url),
        secret,
      );
      await delay(2000);
      const asked = await cpuOf(pid!);
      clearInterval(asking);
      const many = followByAsking(origin.url, secret, MANY_EDGES);
      const crowded = await cpuOf(pid!);
      many.abort();
      return [
        [
          `one of ${edges} edges that nobody asks for keys, ms of CPU of the origin a second`,
          figure((rested - alone) / edges, 2),
        ],
        [`one of ${edges} edges that are asked, ms of CPU of the origin a second`, figure((asked - alone) / edges, 1)],
        [
          `an ask of one of ${MANY_EDGES} edges that are asked, µs of CPU of the origin`,
          figure(((crowded - alone) / MANY_EDGES / ASKS_A_SECOND) * 1000, 0),
        ],
      ];
    } finally {
      for (const { child } of running.toReversed()) {
        child.kill();
        await once(child, 'exit');
      }
    }
  });
}

/** The cost of an edge, and its cost for the origin. */
export async function measureEdge(keys: number): Promise<string> {
  return table(['', ''], [...(await measureTable(keys)), ...(await measureFollowing(4))]);
}
