import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { matchesGlob, relative, resolve } from 'node:path';

/** `npm run test:one -- test/keys/name.test.ts`: runs test files with the settings of their suite. */
interface Suite {
  spec: string | string[];
  timeout: number;
  require: string[];
}

const args = process.argv.slice(2);
const files = args.filter((arg) => arg.endsWith('.test.ts')).map((file) => relative('', resolve(file)));
const options = args.filter((arg) => !arg.endsWith('.test.ts'));
const suites = readdirSync('.')
  .filter((name) => name.startsWith('.mocharc'))
  .map((name) => JSON.parse(readFileSync(name, 'utf8')) as Suite);
const chosen = suites.filter(({ spec }) =>
  files.some((file) => [spec].flat().some((pattern) => matchesGlob(file, pattern))),
);
if (chosen.length !== 1) {
  process.stderr.write('Name files of one suite, for instance: npm run test:one -- test/keys/errors.test.ts\n');
  process.exit(2);
}
const [{ timeout, require: required }] = chosen as [Suite];
const requires = required.flatMap((path) => ['--require', path]);
const { status } = spawnSync(
  process.execPath,
  [
    'node_modules/mocha/bin/mocha.js',
    '--no-config',
    '--exit',
    '--timeout',
    `${timeout}`,
    ...requires,
    ...options,
    ...files,
  ],
  { stdio: 'inherit' },
);
process.exitCode = status ?? 1;
