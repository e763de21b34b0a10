import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';
import { parseArgs } from 'node:util';
import { figure, table } from './figures.ts';
import { copyInto, withPostgres } from './postgres.ts';
import { isPinned } from './processes.ts';
import { BETTER_AUTH, CONSTANT_ROWS, GRAPHQL_ROWS, NAIVE, type Row } from './rows.ts';
import { measureScale } from './scale.ts';
import { measureStartUp, OTHERS, OWN, startUpTable } from './start-up.ts';
import { makeStores, postgresPath, storePath, withFolder } from './stores.ts';
import { measureThroughput, type Throughput } from './throughput.ts';
import type { Workload } from './workloads.ts';

/** `npm run bench`: measures everything, or the named parts, and prints the results in Markdown. */
const PARTS = ['graphql', 'constant', 'start-up', 'scale'];
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: 'string', default: '3' }, seconds: { type: 'string', default: '3' } },
});
const parts = positionals.length > 0 ? positionals : PARTS;
const rounds = { rounds: Number(values.rounds), seconds: Number(values.seconds), warmUp: 1 };
const KEYS = 100_000;

const root = new URL('..', import.meta.url);
// Measure the sources as they are now.
execFileSync('npm', ['run', '--silent', 'build'], { cwd: root, stdio: 'inherit' });

print(
  `${new Date().toISOString().slice(0, 10)}, ${cpus().length} × ${cpus()[0]?.model}, ` +
    `${figure(totalmem() / 2 ** 30)} GB, Linux load ${loadavg()[0]!.toFixed(1)} before, Node ${process.versions.node}, ` +
    (isPinned ? 'server and load pinned to a core each' : 'server and load not pinned: no taskset'),
);
if (parts.includes('graphql') || parts.includes('constant')) {
  await withFolder(async (folder) => {
    const keys = await makeStores(folder, KEYS);
    if (parts.includes('graphql')) {
      await withPostgres(async (url) => {
        writeFileSync(postgresPath(folder), (await copyInto(url, 'graphql', storePath(folder))).url);
        print(throughputTable(await measureThroughput(GRAPHQL_ROWS, keys, folder, rounds), ['me', 'items'], NAIVE));
      });
    }
    if (parts.includes('constant')) {
      print(throughputTable(await measureThroughput(CONSTANT_ROWS, keys, folder, rounds), ['constant'], BETTER_AUTH));
    }
  });
}
if (parts.includes('start-up')) print(startUpTable(await measureStartUp([...OWN, ...OTHERS], 10 * rounds.rounds)));
if (parts.includes('scale')) print(await measureScale(rounds.rounds));

function throughputTable(results: readonly Throughput[], workloads: readonly Workload[], base: Row): string {
  const baseline = results.find(({ row }) => row === base)!.medians;
  return table(
    [
      'row',
      ...workloads.flatMap((name) => [`${name}, requests/s`, 'ratio', 'CPU µs', 'ratio', 'p99 ms', 'load busy']),
      'memory MB',
    ],
    results.map(({ row, medians, memory }) => [
      row.title,
      ...workloads.flatMap((name) => {
        const { rate, cpu, p99, busy } = medians.get(name)!;
        const { rate: baseRate, cpu: baseCpu } = baseline.get(name)!;
        return [
          figure(rate),
          figure(rate / baseRate, 2),
          figure(cpu, 1),
          figure(baseCpu / cpu, 2),
          figure(p99, 1),
          `${figure(busy * 100)} %`,
        ];
      }),
      figure(memory / 2 ** 20),
    ]),
  );
}

function print(text: string): void {
  process.stdout.write(`${text}\n\n`);
}
