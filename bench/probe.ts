import { readFileSync } from 'node:fs';
import { digestSecret } from '../src/keys/secret/secret.ts';
import type { BenchKey } from './stores.ts';
import { OPERATOR, openKeys } from './svc-api.ts';
import { Declarations } from '../src/features/apply/apply.ts';

/** The measurement, as JSON in the file given as the only argument. */
export interface ProbeOptions {
  database: string;
  keys: readonly BenchKey[];
  /** The cursor before the last page. */
  lastPage: string;
}

/** The result, printed as JSON. Times are in microseconds per call. */
export interface ProbeReport {
  /** Checking a key that was accepted before, with this many checks in one turn of the event loop. */
  check32: number;
  check1: number;
  /** The first check of a key: SHA-256 and a SELECT. */
  firstCheck: number;
  firstPage: number;
  lastPage: number;
  /** Searches: one without results, one with a single key, and the first page of one that finds all keys. */
  search: number;
  searchOne: number;
  searchAll: number;
  /** The count of keys by status, and its longest turn of the event loop in CPU time. */
  count: number;
  countTurn: number;
  /** The longest turn of the first count, before its code is compiled. */
  firstCountTurn: number;
  create: number;
  delete: number;
  /** For each of 1,000 declared keys: creation, an unchanged apply, and deletion in one call. */
  apply: number;
  applyAgain: number;
  deleteMany: number;
  /** Resident memory after all these keys have been accepted once, in bytes. */
  memory: number;
}

const PAGE = 50;
const { database, keys: known, lastPage } = JSON.parse(readFileSync(process.argv[2]!, 'utf8')) as ProbeOptions;
const keys = await openKeys({ database, ifMissing: 'fail' });
const secrets = known.map(({ secret }) => secret);
for (const secret of secrets)
  if ('refused' in (await keys.authenticator.confirm(secret))) throw new Error('A key is refused.');

globalThis.gc?.();
const memory = process.memoryUsage.rss();

const report: ProbeReport = {
  memory,
  check32: await timeOfChecks(32, 20_000),
  check1: await timeOfChecks(1, 50_000),
  firstCheck: await timeOf(10_000, (index) => keys.identify(secrets[index % secrets.length]!, OPERATOR)),
  firstPage: await timeOf(500, () => keys.list({ first: PAGE }, OPERATOR)),
  lastPage: await timeOf(500, () => keys.list({ first: PAGE, after: lastPage }, OPERATOR)),
  search: await timeOf(50, () => keys.list({ search: 'is nowhere' }, OPERATOR)),
  searchOne: await timeOf(50, (index) => keys.list({ search: known[index % known.length]!.name }, OPERATOR)),
  searchAll: await timeOf(50, () => keys.list({ first: PAGE, search: 'key' }, OPERATOR)),
  ...(await timesOfCounts(5)),
  ...(await timesOfWrites(200)),
  ...(await timesOfMany(1000)),
};
await keys.close();
process.stdout.write(JSON.stringify(report));

async function timeOf(times: number, work: (index: number) => Promise<unknown>): Promise<number> {
  for (let index = 0; index < times / 5; index += 1) await work(index);
  const start = performance.now();
  for (let index = 0; index < times; index += 1) await work(index);
  return ((performance.now() - start) * 1000) / times;
}

/** The time of one check, excluding the turns themselves. */
async function timeOfChecks(inTurn: number, turns: number): Promise<number> {
  await timeOfTurns(inTurn, turns / 5);
  const empty = await timeOfTurns(0, turns);
  return ((await timeOfTurns(inTurn, turns)) - empty) / inTurn;
}

/** The microseconds of a turn of the event loop with this many checks, as in a server. */
async function timeOfTurns(inTurn: number, turns: number): Promise<number> {
  const start = performance.now();
  for (let turn = 0; turn < turns; turn += 1) {
    await new Promise(setImmediate);
    for (let index = 0; index < inTurn; index += 1) {
      const secret = secrets[(turn + index) % secrets.length]!;
      const verified = keys.authenticator.findVerified(digestSecret(secret));
      if (verified) keys.authenticator.countUse(verified);
      // After a write to the store, as servers record usage every other second.
      else await keys.authenticator.confirm(secret);
    }
  }
  return ((performance.now() - start) * 1000) / turns;
}

/** The minimum of several counts, and of their longest turns. */
async function timesOfCounts(times: number): Promise<Pick<ProbeReport, 'count' | 'countTurn' | 'firstCountTurn'>> {
  const counts: number[] = [];
  const turns: number[] = [];
  for (let time = 0; time < times; time += 1) {
    let longest = 0;
    let isCounting = true;
    let before = cpuTime();
    const turn = () => {
      const now = cpuTime();
      longest = Math.max(longest, now - before);
      before = now;
      if (isCounting) setImmediate(turn);
    };
    setImmediate(turn);
    counts.push(await timeOnce(() => keys.store.countKeys()));
    isCounting = false;
    turns.push(longest);
  }
  return { count: Math.min(...counts), countTurn: Math.min(...turns), firstCountTurn: turns[0]! };
}

/** The CPU time of this thread, in microseconds. */
function cpuTime(): number {
  const { user, system } = process.threadCpuUsage();
  return user + system;
}

/** The times of creating and deleting a key. The store keeps its size. */
async function timesOfWrites(times: number): Promise<Pick<ProbeReport, 'create' | 'delete'>> {
  const ids: string[] = [];
  const create = await timeOf(times, async (index) => {
    const { apiKey: key } = await keys.create(
      { name: `Made ${process.pid} ${ids.length} ${index}`, roles: ['VIEWER'] },
      OPERATOR,
    );
    ids.push(key.id);
  });
  const remove = await timeOf(times, () => keys.delete([ids.pop()!], OPERATOR));
  return { create, delete: remove };
}

/** The same for many keys in one transaction. */
async function timesOfMany(size: number): Promise<Pick<ProbeReport, 'apply' | 'applyAgain' | 'deleteMany'>> {
  const declared = Array.from({ length: size }, (_, index) => ({
    name: `Declared ${process.pid} ${index}`,
    description: null,
    roles: ['VIEWER' as const],
    permissions: [],
    expiresAt: null,
  }));
  let ids: string[] = [];
  const apply = await timeOnce(async () => {
    ids = (await keys.feature(Declarations).apply(declared, { prune: false }, OPERATOR)).created.map(
      ({ apiKey }) => apiKey.id,
    );
  });
  const applyAgain = await timeOnce(() => keys.feature(Declarations).apply(declared, { prune: false }, OPERATOR));
  const deleteMany = await timeOnce(() => keys.delete(ids, OPERATOR));
  return { apply: apply / size, applyAgain: applyAgain / size, deleteMany: deleteMany / size };
}

async function timeOnce(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return (performance.now() - start) * 1000;
}
