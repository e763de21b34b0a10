import { cpus, loadavg, totalmem } from 'node:os';
import { parseArgs } from 'node:util';
import { measureChurn } from './churn.ts';
import { measureConsole } from './console.ts';
import { measureEdge } from './edge.ts';
import { figure } from './figures.ts';
import { measureGuard, measureUpstreams } from './guard.ts';
import { MAX_LIVE_KEYS, measureLiveKeys } from './live-keys.ts';
import { withCopy } from './postgres.ts';
import { measureOverload } from './overload.ts';
import { isPinned } from './processes.ts';
import { measureRoutes, routesTable } from './routes.ts';
import * as rows from './rows.ts';
import { measureScale } from './scale.ts';
import { HOSTS, measureStartUp, OTHERS, OWN, startUpTable } from './start-up.ts';
import { withStores } from './stores.ts';
import { shapesTable, throughputTable } from './tables.ts';
import { measureTelemetry } from './telemetry.ts';
import { measureThroughput } from './throughput.ts';
import { FAILURES, SHAPES, type Workload } from './workloads.ts';

/** `npm run bench`: measures everything, or the named parts, and prints the results in Markdown. */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '1' },
    /** The size of the store with many live keys, and of an edge's table. */
    keys: { type: 'string', default: '1000000' },
  },
});
const rounds = { rounds: Number(values.rounds), seconds: Number(values.seconds), warmUp: 2 };
const SIZES = { size: 100_000, live: 1000 };

const PARTS: Readonly<Record<string, () => Promise<string>>> = {
  shapes: () =>
    withStores(SIZES, (keys, folder) =>
      withCopy(folder, async () => {
        const results = await measureThroughput(rows.GRAPHQL_ROWS, keys, folder, rounds);
        return `${shapesTable(results, SHAPES)}\n\n${throughputTable(results, rows.COMMON, rows.NAIVE)}`;
      }),
    ),
  failures: () =>
    withStores(SIZES, (keys, folder) =>
      withCopy(folder, async () =>
        shapesTable(await measureThroughput(rows.FAILURE_ROWS, keys, folder, rounds), FAILURES),
      ),
    ),
  churn: () => withStores(SIZES, (keys, folder) => withCopy(folder, () => measureChurn(keys, folder, rounds))),
  'live-keys': () =>
    withStores({ size: Number(values.keys), live: MAX_LIVE_KEYS }, (keys, folder) =>
      withCopy(folder, () => measureLiveKeys(keys, folder, rounds)),
    ),
  workers: () => compare(rows.WORKERS_ROWS, rows.WORKERS, rows.ONE_WORKER),
  middleware: () => compare(rows.MIDDLEWARE_ROWS, rows.CHECKS, rows.EMPTY_MIDDLEWARE),
  limits: () => compare(rows.LIMITS_ROWS, rows.CHECKS, rows.UNLIMITED),
  'forward-auth': () => compare(rows.FORWARD_AUTH_ROWS, rows.FEW_ROUTES.workloads, rows.FEW_ROUTES),
  guard: () => withStores(SIZES, (keys, folder) => measureGuard(keys, folder, rounds)),
  upstreams: () => withStores(SIZES, (keys, folder) => measureUpstreams(keys, folder, rounds)),
  telemetry: () => withStores(SIZES, (keys, folder) => measureTelemetry(keys, folder, rounds)),
  constant: () => compare(rows.CONSTANT_ROWS, rows.CHECKS, rows.BETTER_AUTH),
  'start-up': async () => startUpTable(await measureStartUp([...OWN, ...HOSTS, ...OTHERS], 10 * rounds.rounds)),
  edge: () => measureEdge(Number(values.keys)),
  scale: () => measureScale(rounds.rounds),
  console: measureConsole,
  overload: measureOverload,
  routes: () => Promise.resolve(routesTable(measureRoutes(rounds.rounds))),
};

const unknown = positionals.filter((name) => !(name in PARTS));
if (unknown.length > 0) throw new Error(`There is no part ${unknown.join()}. The parts: ${Object.keys(PARTS).join()}.`);

print(
  `${new Date().toISOString().slice(0, 10)}, ${cpus().length} × ${cpus()[0]?.model}, ` +
    `${figure(totalmem() / 2 ** 30)} GB, Linux load ${loadavg()[0]!.toFixed(1)} before, Node ${process.versions.node}, ` +
    (isPinned ? 'server and load pinned to a core each' : 'server and load not pinned: no taskset'),
);
for (const [name, measure] of Object.entries(PARTS))
  if (positionals.length === 0 || positionals.includes(name))
    print(`\`npm run bench -- ${name}\`\n\n${await measure()}`);

function compare(compared: readonly rows.Row[], workloads: readonly Workload[], base: rows.Row): Promise<string> {
  return withStores(SIZES, async (keys, folder) =>
    throughputTable(await measureThroughput(compared, keys, folder, rounds), workloads, base),
  );
}

function print(text: string): void {
  process.stdout.write(`${text}\n\n`);
}
