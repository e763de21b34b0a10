import { spawnSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { MAY_LIVE } from './may-live.ts';
import { type Mutant, nameOf, type Report, showMutant } from './report.ts';
import config from './stryker.config.ts';

/**
 * `npm run mutants`: changes `src/keys` and `src/http`, or the files and folders that are named, in one place after
 * another, and runs the tests that pass there. Prints the changes that no test notices, except those that may live.
 * Options of Stryker may be given as well, such as `--concurrency=1`.
 */
const given = process.argv.slice(2);
const options = given.filter((argument) => argument.startsWith('-'));
const named = given.filter((argument) => !argument.startsWith('-'));
const paths = named.length > 0 ? named : ['src/keys', 'src/http'];
const isFolder = (path: string) => statSync(path, { throwIfNoEntry: false })?.isDirectory();
const globs = paths.map((path) => (isFolder(path) ? `${path}/**/*.ts` : path));
const STRYKER = 'mutants/node_modules/@stryker-mutator/core/bin/stryker.js';

const { status } = spawnSync(
  process.execPath,
  [STRYKER, 'run', 'mutants/stryker.config.ts', '--mutate', globs.join(), ...options],
  {
    stdio: 'inherit',
    env: {
      ...process.env,
      NODE_OPTIONS: `--import=${import.meta.resolve('./mocha-12.ts')}`,
      // Nothing connects to it: the tests that would are left out.
      TEST_DATABASE_URL: 'postgres://none.invalid/none',
      SVC_API_TEST_SEEDS: '1',
    },
  },
);
if (status !== 0) process.exit(1);

const { files } = JSON.parse(readFileSync(config.jsonReporter.fileName, 'utf8')) as Report;
const counts = new Map<string, number>();
const excused = new Set(MAY_LIVE.flatMap(({ mutants }) => mutants));
const living: string[] = [];
for (const [file, { source, mutants }] of Object.entries(files)) {
  for (const mutant of mutants) {
    const isExcused = isAlive(mutant) && excused.has(nameOf(file, source, mutant));
    if (isAlive(mutant) && !isExcused) living.push(showMutant(file, source, mutant));
    const outcome = isExcused ? 'may live' : mutant.status;
    counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
  }
}
const summary = Array.from(counts, ([outcome, count]) => `${count} ${outcome}`).join(', ');
process.stdout.write(`${['', ...living, summary].join('\n')}\n`);
if (living.length > 0) process.exitCode = 1;

function isAlive({ status }: Mutant): boolean {
  return status === 'Survived' || status === 'NoCoverage';
}
