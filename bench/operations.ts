import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Client } from 'pg';
import { pauseAfter, PIECE_KEYS } from '../src/keys/authentication/pieces.ts';
import { Upkeep } from '../src/keys/authentication/upkeep.ts';
import { writeUses } from '../src/keys/authentication/activity.ts';
import { PERIOD_MS } from '../src/keys/key/use.ts';
import { listenersOf } from '../src/keys/changes/steps-of-plugins.ts';
import { allStores, FEATURES } from '../src/features/index.ts';
import { firstKept } from '../src/features/usage/usage.ts';
import { openStore } from '../src/store/open.ts';
import { finished, startCli } from '../test/support/process.ts';
import { figure, median, table } from './figures.ts';
import { withPostgres } from './postgres.ts';
import { withFolder } from './stores.ts';
import { OPERATOR, openKeys } from './svc-api.ts';

/**
 * `npm run scale [-- <keys>… --engine sqlite|postgres]`: imports stores of these sizes, and prints the cost of every
 * operation on them, in Markdown. Meanwhile, one program disables and enables a key repeatedly, and another one sends
 * `me` to a server.
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    engine: { type: 'string', multiple: true, default: ['sqlite', 'postgres'] },
    /** Internal: a store and the key that the started program toggles. */
    toggle: { type: 'string' },
    usage: { type: 'string' },
  },
});

/** The cost of an operation. */
interface Measured {
  operation: string;
  /** CPU time of the program that runs it, in milliseconds. */
  cpu: number;
  /** CPU time of the database server, in milliseconds. */
  databaseCpu: number;
  wall: number;
  /** The longest wait of a concurrent change, in milliseconds. */
  lock?: number | undefined;
  /** The longest wait of a concurrent `me`, in milliseconds; only for operations in the server. */
  stall?: number;
  /** The program's peak memory, in bytes. */
  memory: number;
}

/** A store, and the programs that use it meanwhile. */
interface Bench {
  database: string;
  folder: string;
  size: number;
  /** In milliseconds. */
  databaseCpu: () => number;
  report: (measured: Measured) => void;
}

/** The built program. */
const PROGRAM = fileURLToPath(new URL('../bin/run.js', import.meta.url));
/** A clock tick, see proc_pid_stat(5). */
const TICK_MS = 10;
/** How often a cheap request is sent. */
const TIMES = 15;

async function measureAll(sizes: readonly number[]): Promise<void> {
  for (const engine of values.engine) {
    const results: Measured[][] = [];
    for (const size of sizes) {
      const rows: Measured[] = [];
      const report = (measured: Measured) => {
        rows.push(measured);
        process.stderr.write(`${engine}, ${size}: ${JSON.stringify(measured)}\n`);
      };
      await withFolder((folder) =>
        engine === 'sqlite'
          ? measureStore({ database: join(folder, 'keys.sqlite'), folder, size, databaseCpu: () => 0, report })
          : withPostgres(async (database) =>
              measureStore({ database, folder, size, databaseCpu: await cpuOfServer(database), report }),
            ),
      );
      results.push(rows);
      process.stdout.write(`${tableOf(engine, size, rows)}\n\n`);
    }
    process.stdout.write(`${growthOf(engine, sizes, results)}\n\n`);
  }
}

function tableOf(engine: string, size: number, rows: readonly Measured[]): string {
  const short = (value: number | undefined) => (value === undefined ? '' : figure(value, value < 10 ? 1 : 0));
  const title = engine === 'sqlite' ? 'SQLite' : 'PostgreSQL';
  return table(
    [
      `${title}, ${figure(size)} keys`,
      'CPU ms',
      ...(engine === 'sqlite' ? [] : ['of the database, ms']),
      'wall ms',
      'longest lock ms',
      'longest stall ms',
      'memory MB',
    ],
    rows.map(({ operation, cpu, databaseCpu, wall, lock, stall, memory }) => [
      operation,
      short(cpu),
      ...(engine === 'sqlite' ? [] : [short(databaseCpu)]),
      short(wall),
      short(lock),
      short(stall),
      figure(memory / 2 ** 20),
    ]),
  );
}

/** Names the operations whose cost grows faster than the number of keys. */
function growthOf(engine: string, sizes: readonly number[], results: readonly (readonly Measured[])[]): string {
  const steeper = sizes.slice(1).flatMap((size, index) => {
    const more = size / sizes[index]!;
    return results[index + 1]!.flatMap(({ operation, cpu, databaseCpu }) => {
      const before = results[index]!.find((row) => row.operation === operation)!;
      const factor = (cpu + databaseCpu) / (before.cpu + before.databaseCpu);
      return factor > 1.2 * more ? `${operation} (${figure(factor)} times for ${figure(more)} times the keys)` : [];
    });
  });
  return `More than linear on ${engine}: ${steeper.join(', ') || 'nothing'}.`;
}

async function measureStore(bench: Bench): Promise<void> {
  const { database, folder, size, report } = bench;
  const path = (name: string) => join(folder, name);
  const created = await openKeys({ database });
  const [toggled, admin] = [
    await created.create({ name: 'Toggled', roles: ['GUEST'] }, OPERATOR),
    await created.create({ name: 'Admin', roles: ['ADMIN'] }, OPERATOR),
  ];
  await created.close();
  writeFileSync(path('keys.jsonl'), linesOf(size));
  writeFileSync(path('declared.json'), JSON.stringify({ keys: declared() }));
  const beside = await startToggle(database, toggled.apiKey.id);
  const command = async (operation: string, args: readonly string[]) =>
    report(await measureProgram({ ...bench, beside }, operation, [PROGRAM, ...args, '--database', database]));
  await command('import', ['apikey', 'import', path('keys.jsonl')]);
  await measureServer(bench, admin.key, beside);
  await command('show', ['apikey', 'show', `Imported ${size - 1}`]);
  await command('export', ['apikey', 'export', '--with-digests']);
  await command('apply of 1,000 keys', [
    'apikey',
    'apply',
    '--file',
    path('declared.json'),
    '--secrets-dir',
    path('secrets'),
  ]);
  await command('apply again', ['apikey', 'apply', '--file', path('declared.json')]);
  await command('log --verify', ['apikey', 'log', '--verify']);
  await command('doctor', ['doctor']);
  await command('backup', ['backup', path('backup.sqlite')]);
  await command('copy', ['apikey', 'export', '--to', path('copy.sqlite')]);
  const usage = fileURLToPath(import.meta.url);
  for (const what of ['flush of the use of all keys', 'condensation of it'])
    report(await measureProgram({ ...bench, beside }, what, [usage, '--usage', database, what]));
  await command('log --prune', ['apikey', 'log', '--prune', '--until', new Date().toISOString(), '--yes']);
  await beside.stop();
  // A restore fails if keys are changed meanwhile.
  const restore = [PROGRAM, 'restore', path('backup.sqlite'), '--yes', '--database', database];
  report(await measureProgram(bench, 'restore', restore));
}

/** Keys of all kinds as JSON lines. Only the last one has a role. */
function linesOf(size: number): string {
  const line = (index: number) =>
    JSON.stringify({
      name: `Imported ${index}`,
      sha256: index.toString(16).padStart(64, '0'),
      roles: [index === size - 1 ? 'CONNECT' : index % 2 === 0 ? 'VIEWER' : 'GUEST'],
      ...(index % 5 === 0 && { description: `For the pipeline of team ${index % 97}` }),
      ...(index % 8 === 0 && { disabled: true }),
    });
  return Array.from({ length: size }, (_, index) => `${line(index)}\n`).join('');
}

function declared(): object[] {
  return Array.from({ length: 1000 }, (_, index) => ({ name: `Declared ${index}`, roles: ['VIEWER'] }));
}

interface Beside {
  /** The longest wait since the last call, in milliseconds. */
  longest(): Promise<number>;
  stop(): Promise<void>;
}

/** Starts the program that toggles a key. */
async function startToggle(database: string, id: string): Promise<Beside> {
  const child = spawn(process.execPath, [fileURLToPath(import.meta.url), '--toggle', database, id], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const longest = async () => {
    child.stdin.write('\n');
    return Number((await lines.next()).value);
  };
  await longest();
  return {
    longest,
    async stop() {
      child.stdin.end();
      if (child.exitCode === null) await once(child, 'exit');
    },
  };
}

/** Disables and enables a key until stdin ends. Answers each line with the longest wait since the previous one. */
async function toggle(database: string, id: string): Promise<void> {
  const keys = await openKeys({ database });
  let [longest, began] = [0, performance.now()];
  const stopped = new AbortController();
  createInterface({ input: process.stdin })
    .on('line', () => {
      // Includes the operation in progress.
      process.stdout.write(`${Math.max(longest, performance.now() - began)}\n`);
      longest = 0;
    })
    .on('close', () => stopped.abort());
  for (let enabled = false; !stopped.signal.aborted; enabled = !enabled) {
    began = performance.now();
    await keys.setEnabled(id, enabled, OPERATOR).catch((error: Error) => process.stderr.write(`${error.message}\n`));
    longest = Math.max(longest, performance.now() - began);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await keys.close();
}

/** Preloaded into each measured program and its child processes. */
const REPORTER =
  `data:text/javascript,import{appendFileSync}from'node:fs';process.on('exit',()=>{const u=process.resourceUsage();
appendFileSync(process.env.SCALE_REPORT,u.userCPUTime+u.systemCPUTime+' '+u.maxRSS+'\\n')})`.replace('\n', '');

async function measureProgram(
  { folder, databaseCpu, beside }: Bench & { beside?: Beside },
  operation: string,
  args: readonly string[],
): Promise<Measured> {
  const report = join(folder, `report-${operation.replaceAll(/\W/g, '-')}`);
  await beside?.longest();
  const [began, before] = [performance.now(), databaseCpu()];
  const output = join(folder, 'output');
  const child = spawn(process.execPath, ['--import', REPORTER, ...args], {
    // A file, because commands treat a null device differently.
    stdio: ['ignore', openSync(output, 'w'), 'pipe'],
    env: { ...process.env, SCALE_REPORT: report },
  });
  const { code, stderr } = await finished(child);
  if (code !== 0) {
    const printed = readFileSync(output, 'utf8').slice(-2000);
    throw new Error(`${operation} ended with ${code}: ${printed}${stderr}`);
  }
  const wall = performance.now() - began;
  const used = (existsSync(report) ? readFileSync(report, 'utf8').trim().split('\n') : []).map((line) =>
    line.split(' ').map(Number),
  );
  return {
    operation,
    cpu: used.reduce((sum, [cpu]) => sum + cpu! / 1000, 0),
    databaseCpu: databaseCpu() - before,
    wall,
    lock: await beside?.longest(),
    memory: Math.max(0, ...used.map(([, memory]) => memory! * 1024)),
  };
}

async function measureServer(bench: Bench, secret: string, beside: Beside): Promise<void> {
  const { database, databaseCpu, report, size } = bench;
  await beside.longest();
  const [began, before] = [performance.now(), databaseCpu()];
  const child = startCli(['serve', '--database', database, '--port', '0'], { env: { LOG_LEVEL: 'error' } });
  const [line] = (await once(child.stdout!, 'data')) as [unknown];
  const url = /http:\S+/.exec(String(line))![0];
  const usage = () => usageOf(child.pid!);
  const started = usage();
  report({
    operation: 'start of serve',
    ...started,
    databaseCpu: databaseCpu() - before,
    wall: performance.now() - began,
    lock: await beside.longest(),
  });
  const ask = async (query: string, variables: object = {}) => {
    const reply = await fetch(`${url}/graphql`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ query, variables }),
    });
    const { data, errors } = (await reply.json()) as { data: Record<string, any>; errors?: unknown };
    if (errors) throw new Error(JSON.stringify(errors));
    return data;
  };
  let made = 0;
  const create = async () => {
    made += 1;
    const input = { name: `Created ${made}`, roles: ['GUEST'] };
    const document = 'mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { apiKey { id } } }';
    return (await ask(document, { input }))['createApiKey'].apiKey.id as string;
  };
  const ids: string[] = [];
  const list = (filter: string) => () => ask(`{ apiKeys(first: 50${filter}) { edges { node { id name status } } } }`);
  const operations: Record<string, () => Promise<unknown>> = {
    create: async () => ids.push(await create()),
    disable: () => ask(`mutation { setApiKeyEnabled(id: "${ids.at(-1)}", enabled: false) { id } }`),
    // Also includes the lookup of missing ids.
    delete: () => ask(`mutation { deleteApiKeys(ids: ["${ids.pop() ?? 'gone'}"]) { deleted } }`),
    'list, first page': list(''),
    'list by a role that many have': list(', roles: [GUEST]'),
    'list by a role that the last key has': list(', roles: [CONNECT]'),
    'list by status ACTIVE': list(', status: ACTIVE'),
    'list by status DISABLED': list(', status: DISABLED'),
    'list by status EXPIRED, none': list(', status: EXPIRED'),
    'search, 1 character, none': list(', search: "語"'),
    'search, 2 characters, none': list(', search: "zq"'),
    'search, 2 characters, common': list(', search: "im"'),
    'search, 3 characters, none': list(', search: "zqz"'),
    'search, common': list(', search: "imported"'),
    'search for one key': list(`, search: "imported ${size - 1}"`),
    'search, common, with role and status, none': list(', search: "imported", roles: [CONNECT], status: DISABLED'),
  };
  for (const [operation, work] of Object.entries(operations)) {
    await work();
    const walls: number[] = [];
    const [cpuBefore, databaseBefore] = [usage().cpu, databaseCpu()];
    for (let time = 0; time < TIMES; time += 1) {
      const start = performance.now();
      await work();
      walls.push(performance.now() - start);
    }
    const [cpu, inDatabase] = [(usage().cpu - cpuBefore) / TIMES, (databaseCpu() - databaseBefore) / TIMES];
    // Once more, with the concurrent programs.
    await beside.longest();
    let stall = 0;
    const over = new AbortController();
    const others = (async () => {
      while (!over.signal.aborted) {
        const start = performance.now();
        await ask('{ me { id } }');
        stall = Math.max(stall, performance.now() - start);
      }
    })();
    for (let time = 0; time < TIMES; time += 1) await work();
    over.abort();
    await others;
    const { memory } = usage();
    report({
      operation,
      cpu,
      databaseCpu: inDatabase,
      wall: median(walls),
      lock: await beside.longest(),
      stall,
      memory,
    });
  }
  child.kill();
  await once(child, 'exit');
}

/** The CPU time of a program so far, in milliseconds, and its peak memory, in bytes. */
function usageOf(pid: number): { cpu: number; memory: number } {
  const [, peak] = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))!;
  return { cpu: ticksOf(pid, 2) * TICK_MS, memory: Number(peak) * 1024 };
}

/** The CPU time of a program; with four times, including its ended child processes. */
function ticksOf(pid: number, times: 2 | 4): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return fields.slice(11, 11 + times).reduce((sum, field) => sum + Number(field), 0);
}

/** The CPU time of a local PostgreSQL server with all its processes, in milliseconds. */
async function cpuOfServer(url: string): Promise<() => number> {
  const client = new Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
  const parent = Number(readFileSync(`/proc/${rows[0]!.pid}/stat`, 'utf8').split(') ')[1]!.split(' ')[1]);
  await client.end();
  return () => {
    const children = readFileSync(`/proc/${parent}/task/${parent}/children`, 'utf8').trim().split(' ').map(Number);
    const ticks = children.map((pid) => (existsSync(`/proc/${pid}/stat`) ? ticksOf(pid, 2) : 0));
    return (ticksOf(parent, 4) + ticks.reduce((sum, one) => sum + one, 0)) * TICK_MS;
  };
}

/**
 * Records usage of each key in two hours that are about to be condensed into days, as servers do, or condenses them.
 */
async function recordUsage(database: string): Promise<void> {
  const listeners = listenersOf(FEATURES);
  const store = await openStore({ database }, { features: await allStores() });
  const { repository } = store;
  // Servers' timers do not keep a program alive.
  const alive = setInterval(() => {}, 1000);
  const now = Date.now();
  const first = firstKept('HOUR', now) - 2 * PERIOD_MS.HOUR;
  const counts = { accepted: 1, forbidden: 0, limited: 0, refused: 0 };
  const hours = [first, first + PERIOD_MS.HOUR].map((start) => ({ start, ...counts }));
  const totals = { uses: 2, lastUsedAt: first, previousLastUsedAt: null, permissions: [] };
  if (positionals[0]!.startsWith('flush'))
    for await (const keys of repository.pages(PIECE_KEYS)) {
      const began = performance.now();
      const uses = keys.map(({ id }) => ({ id, ...totals, hours }));
      await repository.write((writer) => writeUses(writer, uses, listeners), { counts: true });
      await pauseAfter(began);
    }
  else await new Upkeep({ repository, clock: () => now, listeners }).run();
  clearInterval(alive);
  await store.close();
}

if (values.toggle !== undefined) await toggle(values.toggle, positionals[0]!);
else if (values.usage !== undefined) await recordUsage(values.usage);
else await measureAll(positionals.length > 0 ? positionals.map(Number) : [1000, 100_000, 1_000_000]);
