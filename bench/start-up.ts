import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { figure, median, table } from './figures.ts';
import { withFolder } from './stores.ts';

/** A program that is started repeatedly. */
interface Program {
  title: string;
  /** The arguments for Node; `run` is different each time. */
  args: (run: number) => string[];
  /** What it must print. */
  prints: RegExp;
}

/** The run time in milliseconds, median and minimum, each with its ratio to that of `node -e 0`. */
export interface StartUp {
  title: string;
  time: number;
  ratio: number;
  least: number;
  leastRatio: number;
}

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const BIN = path('../bin/run.js');
const NODE: Program = { title: '`node -e 0`', args: () => ['-e', '0'], prints: /^$/ };
export const OWN: readonly Program[] = [
  {
    title: '`svc-api apikey --create --json`',
    args: (run) => [BIN, 'apikey', '--create', '--name', `Run ${run}`, '--roles', 'VIEWER', '--json'],
    prints: /"key": *"svc_/,
  },
  { title: '`svc-api --help`', args: () => [BIN, '--help'], prints: /apikey/ },
];
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
    const all = [NODE, ...programs].map((program) => ({ ...program, times: [] as number[] }));
    const env = { ...process.env, SVC_API_DATABASE: join(folder, 'keys.sqlite') };
    for (let run = -2; run < runs; run += 1) {
      for (const { title, args, prints, times } of all) {
        const start = performance.now();
        const { status, stdout, stderr } = spawnSync(process.execPath, args(run + 2), { encoding: 'utf8', env });
        const time = performance.now() - start;
        assert.equal(status, 0, `${title} failed: ${stderr}`);
        assert.match(stdout, prints, `${title} prints something else`);
        if (run >= 0) times.push(time);
      }
    }
    const [first] = all;
    return all.map(({ title, times }) => {
      const [time, least] = [median(times), Math.min(...times)];
      return { title, time, ratio: time / median(first!.times), least, leastRatio: least / Math.min(...first!.times) };
    });
  });
}

export function startUpTable(results: readonly StartUp[]): string {
  return table(
    ['program', 'median, ms', 'ratio', 'least, ms', 'ratio'],
    results.map(({ title, time, ratio, least, leastRatio }) => [
      title,
      figure(time, 1),
      figure(ratio, 2),
      figure(least, 1),
      figure(leastRatio, 2),
    ]),
  );
}
