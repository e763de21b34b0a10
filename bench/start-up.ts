import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { figure, median, table } from './figures.ts';
import { cpuTimeOfChildren } from './processes.ts';
import { withFolder } from './stores.ts';

/** A program that is started repeatedly. */
interface Program {
  title: string;
  /** The arguments for Node; `run` differs each time, and `folder` has the store. */
  args: (run: number, folder: string) => string[];
  /** The expected output. */
  prints: RegExp;
}

/**
 * The run time in milliseconds, median and minimum, and the mean CPU time of all threads (NaN if unknown), each with
 * its ratio to `node -e 0`.
 */
export interface StartUp {
  title: string;
  time: number;
  ratio: number;
  least: number;
  leastRatio: number;
  cpu: number;
  cpuRatio: number;
}

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const BIN = path('../bin/run.js');
const NODE: Program = { title: '`node -e 0`', args: () => ['-e', '0'], prints: /^$/ };
const own = (title: string, prints: RegExp, args: Program['args']): Program => ({
  title,
  args: (run, folder) => [BIN, ...args(run, folder)],
  prints,
});
const newKey = (run: number) => ['--name', `Run ${run}`, '--roles', 'VIEWER', '--json'];
/** Commands of svc-api. Each does more than the previous one; the difference is the cost of that. */
export const OWN: readonly Program[] = [
  own('`svc-api --version`', /^svc-api/, () => ['--version']),
  own('`svc-api --help`', /apikey/, () => ['--help']),
  own('`svc-api apikey --help`', /--create/, () => ['apikey', '--help']),
  own('`svc-api apikey create --dry-run --json`, no store', /READ_ANY/, (run, folder) => {
    return ['apikey', 'create', ...newKey(run), '--dry-run', '--database', join(folder, 'missing.sqlite')];
  }),
  own('`svc-api apikey --create --json`', /"key": *"svc_/, (run) => ['apikey', '--create', ...newKey(run)]),
  own('`svc-api apikey show --json`', /"name": *"Run 0"/, () => ['apikey', 'show', 'Run 0', '--json']),
  own('`svc-api apikey --create --json`, new store', /"key": *"svc_/, (run, folder) => {
    return ['apikey', '--create', ...newKey(run), '--database', join(folder, `new-${run}.sqlite`)];
  }),
];
/** A host CLI with this checkout as a plugin. @param features undefined for all */
function hostIn(folder: string, features?: readonly string[]): string {
  const host = join(folder, features ? `acme-${features.length}` : 'acme');
  const run = join(host, 'bin/run.js');
  if (existsSync(run)) return run;
  mkdirSync(join(host, 'node_modules/@oclif'), { recursive: true });
  symlinkSync(path('..'), join(host, 'node_modules/svc-api'));
  symlinkSync(path('../node_modules/@oclif/core'), join(host, 'node_modules/@oclif/core'));
  const oclif = { bin: 'acme', dirname: 'acme', topicSeparator: ' ', plugins: ['svc-api'] };
  const manifest = {
    name: 'acme',
    version: '1.0.0',
    type: 'module',
    dependencies: { 'svc-api': '*' },
    oclif,
    'svc-api': features && { features },
  };
  writeFileSync(join(host, 'package.json'), JSON.stringify(manifest));
  cpSync(path('../examples/host-cli/bin'), join(host, 'bin'), { recursive: true });
  return run;
}

/** Commands in a host with all features, and in a host without any. */
export const HOSTS: readonly Program[] = (
  [
    ['all features', undefined],
    ['no feature', []],
  ] as const
).flatMap(([title, features]): Program[] => [
  {
    title: `a host with ${title}, \`apikey --help\``,
    args: (_, folder) => [hostIn(folder, features), 'apikey', '--help'],
    prints: /--create/,
  },
  {
    title: `a host with ${title}, \`apikey --create --json\``,
    args: (run, folder) => [
      hostIn(folder, features),
      'apikey',
      '--create',
      ...newKey(run),
      '--database',
      join(folder, `${title}.sqlite`),
    ],
    prints: /"key": *"svc_/,
  },
]);
export const OTHERS: readonly Program[] = [
  {
    title: 'hello in oclif',
    args: () => [path('hello/oclif/bin/run.js'), 'hello', 'world'],
    prints: /^hello world from oclif\n$/,
  },
  {
    title: 'hello in commander',
    args: () => [path('hello/commander.js'), 'hello', 'world'],
    prints: /^hello world from commander\n$/,
  },
];

/** Starts each program in turn, `runs` times, after two runs that warm up the file and compile caches. */
export function measureStartUp(programs: readonly Program[], runs: number): Promise<StartUp[]> {
  return withFolder(async (folder) => {
    const all = [NODE, ...programs].map((program) => ({ ...program, times: [] as number[], cpu: 0 }));
    const env = { ...process.env, SVC_API_DATABASE: join(folder, 'keys.sqlite') };
    for (let run = -2; run < runs; run += 1) {
      for (const program of all) {
        const { title, args, prints, times } = program;
        const [start, cpuBefore] = [performance.now(), cpuTimeOfChildren()];
        const { status, stdout, stderr } = spawnSync(process.execPath, args(run + 2, folder), {
          encoding: 'utf8',
          env,
        });
        const [time, cpu] = [performance.now() - start, cpuTimeOfChildren() - cpuBefore];
        assert.equal(status, 0, `${title} failed: ${stderr}`);
        assert.match(stdout, prints, `${title} prints something else`);
        if (run < 0) continue;
        times.push(time);
        program.cpu += (cpu * 1000) / runs;
      }
    }
    const [first] = all;
    return all.map(({ title, times, cpu }) => {
      const [time, least] = [median(times), Math.min(...times)];
      return {
        title,
        time,
        ratio: time / median(first!.times),
        least,
        leastRatio: least / Math.min(...first!.times),
        cpu,
        cpuRatio: cpu / first!.cpu,
      };
    });
  });
}

export function startUpTable(results: readonly StartUp[]): string {
  return table(
    ['program', 'median, ms', 'ratio', 'least, ms', 'ratio', 'CPU, ms', 'ratio'],
    results.map(({ title, time, ratio, least, leastRatio, cpu, cpuRatio }) => [
      title,
      figure(time, 1),
      figure(ratio, 2),
      figure(least, 1),
      figure(leastRatio, 2),
      figure(cpu, 1),
      figure(cpuRatio, 2),
    ]),
  );
}
