import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { hash, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { FeedLines } from '../src/edge/feed-lines.ts';
import { KeyTable } from '../src/edge/key-table.ts';
import { OPERATOR } from '../src/keys/authorization/index.ts';
import { openKeys } from '../src/service/open-keys.ts';
import { figure, table } from './figures.ts';
import { withFolder } from './stores.ts';

const BIN = fileURLToPath(new URL('../bin/run.js', import.meta.url));
const PIECE_KEYS = 500;
const LOOKS = 100_000;
/** How long the origin is watched, in seconds. */
const IDLE_SECONDS = 20;

const digestOf = (secret: string) => hash('sha256', secret, 'base64url');

/** A line of the feed, as a store has it of a usual key. */
function lineOf(index: number): string {
  const others = [null, null, null, '["VIEWER"]', '[]', randomUUID().slice(0, 12), 1_700_000_000_000 + index];
  const rest = [null, null, null, null, null, null, 0, null, null, null, null, null, 'abcdefghijk'];
  return `+${JSON.stringify([randomUUID(), digestOf(`${index}`), null, `Key ${index}`, ...others, ...rest])}\n`;
}

/** What a table of so many keys takes, and how long it takes to find one. */
async function measureTable(keys: number): Promise<(readonly [string, string])[]> {
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
  const look = (digests: readonly string[]) => {
    const before = process.cpuUsage();
    for (const digest of digests) keyTable.findByDigest(digest);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / digests.length;
  };
  const unknown = look(Array.from({ length: LOOKS }, (_, index) => digestOf(`unknown ${index}`)));
  const known = look(Array.from({ length: LOOKS }, () => digestOf(`${Math.floor(Math.random() * keys)}`)));
  const bytes = keyTable.memoryBytes / keys;
  keyTable.close();
  return [
    ['keys', figure(keys)],
    ['loading them, s of CPU', figure(cpuUs / 1e6, 1)],
    ['memory of a key, bytes', figure(bytes, 1)],
    ['an unknown secret, µs beside its hash', figure(unknown, 1)],
    ['a key that was not used before, µs, with reading, decrypting and parsing its row', figure(known, 1)],
  ];
}

/** Starts a program, and waits until it listens. */
async function listening(args: readonly string[]) {
  const child = spawn(process.execPath, [BIN, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  return { child, url: /http\S+/.exec(String(line))![0] };
}

/** How much of a processor a process used, in milliseconds a second. */
async function cpuOf(pid: number): Promise<number> {
  const ticks = () => {
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]!.split(' ');
    return Number(fields[11]) + Number(fields[12]);
  };
  const before = ticks();
  await delay(IDLE_SECONDS * 1000);
  return ((ticks() - before) * 10) / IDLE_SECONDS;
}

/** What edges at rest take of their origin. */
function measureIdle(edges: number): Promise<(readonly [string, string])[]> {
  return withFolder(async (folder) => {
    const database = join(folder, 'keys.sqlite');
    const keys = await openKeys({ database });
    const { key: secret } = await keys.create({ name: 'Edge', permissions: ['EDGE:READ_ANY'] }, OPERATOR);
    await keys.close();
    const tokenFile = join(folder, 'edge.key');
    writeFileSync(tokenFile, secret, { mode: 0o600 });
    const running = [await listening(['serve', '--database', database, '--port', '0'])];
    const [{ child: origin, url }] = running as [Awaited<ReturnType<typeof listening>>];
    try {
      const alone = await cpuOf(origin.pid!);
      for (let index = 0; index < edges; index += 1)
        running.push(await listening(['edge', '--origin', url, '--token-file', tokenFile, '--port', '0']));
      const followed = await cpuOf(origin.pid!);
      return [['an edge at rest, ms of CPU of its origin a second', figure((followed - alone) / edges, 1)]];
    } finally {
      for (const { child } of running.toReversed()) {
        child.kill();
        await once(child, 'exit');
      }
    }
  });
}

/** What an edge takes, and its origin for it. */
export async function measureEdge(keys: number): Promise<string> {
  return table(['', ''], [...(await measureTable(keys)), ...(await measureIdle(4))]);
}
