import { spawnSync } from 'node:child_process';
import { globSync, readFileSync, statSync } from 'node:fs';
import { MAY_LIVE } from './may-live.ts';
import { nameOf, type Report, showMutant } from './report.ts';
import config from './stryker.config.ts';
import { testsOf } from './tests-of.ts';

/**
 * `npm run mutants`: changes `src/keys` and `src/http`, or the files and folders that are named, in one place after
 * another, and runs the tests of the same folder that pass there. Prints the changes that no test notices, except those
 * that may live. Options of Stryker may be given as well, such as `--concurrency=1`.
 */
const STRYKER = 'mutants/node_modules/@stryker-mutator/core/bin/stryker.js';
/** Data that a program has made. */
const GENERATED = '!src/keys/key/confusables.ts';

const given = process.argv.slice(2);
const options = given.filter((argument) => argument.startsWith('-'));
const named = given.filter((argument) => !argument.startsWith('-'));
const paths = named.length > 0 ? named : ['src/keys', 'src/http'];
// Folder by folder: each is tried on fewer tests.
const parts = paths.flatMap((path) => (path === 'src/keys' ? globSync(`${path}/*`) : path));
const excused = new Set(MAY_LIVE.flatMap(({ mutants }) => mutants));
const counts = new Map<string, number>();

for (const [folder, ofFolder] of Map.groupBy(parts, folderOf)) {
  for (const [file, { source, mutants }] of Object.entries(mutate(ofFolder, testsOf(folder)).files)) {
    for (const mutant of mutants) {
      const isAlive = mutant.status === 'Survived' || mutant.status === 'NoCoverage';
      const isExcused = isAlive && excused.has(nameOf(file, source, mutant));
      if (isAlive && !isExcused) {
        process.stdout.write(`\n${showMutant(file, source, mutant)}\n`);
        process.exitCode = 1;
      }
      const outcome = isExcused ? 'MayLive' : mutant.status;
      counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
    }
  }
}
process.stdout.write(`\n${Array.from(counts, ([outcome, count]) => `${count} ${outcome}`).join(', ')}\n`);

/** `http`, or `keys/secret`: the folder below `src` whose tests a path is tried on. */
function folderOf(path: string): string {
  const [, folder, room] = path.replace(/\/[^/]+\.ts$/, '').split('/');
  return folder === 'keys' && room ? `keys/${room}` : folder!;
}

function mutate(paths: readonly string[], tests: readonly string[]): Report {
  const isFolder = (path: string) => statSync(path, { throwIfNoEntry: false })?.isDirectory();
  const globs = paths.map((path) => (isFolder(path) ? `${path}/**/*.ts` : path));
  const env = {
    ...process.env,
    NODE_OPTIONS: `--import=${import.meta.resolve('./mocha-12.ts')}`,
    MUTANTS_TESTS: tests.join(),
    // Nothing connects to it: the tests that would are left out.
    TEST_DATABASE_URL: 'postgres://none.invalid/none',
    SVC_API_TEST_SEEDS: '1',
  };
  const args = [STRYKER, 'run', 'mutants/stryker.config.ts', '--mutate', [...globs, GENERATED].join(), ...options];
  const { status } = spawnSync(process.execPath, args, { stdio: 'inherit', env });
  if (status !== 0) process.exit(1);
  return JSON.parse(readFileSync(config.jsonReporter.fileName, 'utf8')) as Report;
}
