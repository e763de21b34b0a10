import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { FEATURES } from '../src/features/index.ts';
import { CORE_TESTS, FEATURE_TESTS, foldersOf, importsInto, LISTS, withDependents } from './without-features.ts';

/**
 * `npm run without -- <feature>…`: deletes features in a copy of the tree, with their tests, their lines and their
 * dependents, and checks that the rest works: types, build, the core in use, and the tests of the core and the
 * remaining features. `all` deletes every feature. Without a name, it deletes each in turn, then all. `--quick` runs only
 * the test of the core in use.
 */
const root = fileURLToPath(new URL('..', import.meta.url));
const NAMES = FEATURES.map(({ name }) => name);
/** Files of the tree that no check needs. */
const LEFT_OUT = /^(bench|docs\/images|mutants|test\/(browser|docs|faults|packed|pages|processes|proxies|together))\//;
const MOCHA = ['--no-config', '--exit', '--timeout', '600000'].concat(
  ['./test/support/in-memory.ts', './test/support/hooks.ts'].flatMap((path) => ['--require', path]),
);

const args = process.argv.slice(2);
const isQuick = args.includes('--quick');
const asked = args.filter((arg) => arg !== '--quick');
const unknown = asked.filter((name) => !['all', ...NAMES].includes(name));
if (unknown.length > 0) {
  print(`There is no feature ${unknown.join(', ')}. Features are ${NAMES.join(', ')}.`);
  process.exit(2);
}
const runs = asked.length > 0 ? [asked] : [...NAMES.map((name) => [name]), ['all']];
const failed = runs.filter((names) => !isWholeWithout(names));
for (const names of failed) print(`Not whole without ${names.join(', ')}.`);
process.exitCode = failed.length > 0 ? 1 : 0;

/** Checks that the rest works. A copy that fails stays in `.without`. */
function isWholeWithout(names: readonly string[]): boolean {
  const gone = goneWith(names);
  const copy = join(root, '.without', names.join('-'));
  copyTree(copy);
  for (const name of gone) remove(copy, name);
  print(`\n== without ${gone.join(', ')}: ${linesOf(copy)} lines of src`);
  for (const { from, to } of importsInto(root, gone)) print(`${from} imports ${to}`);
  const isWhole = checks(copy, gone).every((check) => check());
  if (isWhole) rmSync(copy, { recursive: true });
  return isWhole;
}

function goneWith(names: readonly string[]): readonly string[] {
  return names.includes('all') ? NAMES : withDependents(names);
}

/** The checks of a copy, in order. */
function checks(copy: string, gone: readonly string[]): (() => boolean)[] {
  const include = ['src', 'scripts/bundle.ts', 'scripts/manifest.ts', CORE_TESTS, FEATURE_TESTS];
  writeFileSync(join(copy, 'tsconfig.without.json'), JSON.stringify({ extends: './tsconfig.json', include }));
  const left = gone.length < NAMES.length ? [FEATURE_TESTS] : [];
  const first = [
    () => run(copy, 'tsc', '--noEmit', '-p', 'tsconfig.without.json'),
    () => run(copy, 'npm', 'run', '--silent', 'build'),
    () => run(copy, 'mocha', ...MOCHA, 'test/core/**/*.test.ts'),
  ];
  const tests = () => run(copy, 'mocha', ...MOCHA, '--parallel', '--grep', '^(?!again )', CORE_TESTS, ...left);
  return isQuick ? first : [...first, tests];
}

function copyTree(copy: string): void {
  rmSync(copy, { recursive: true, force: true });
  const { stdout } = spawnSync('git', ['ls-files', '-co', '--exclude-standard', '-z'], { cwd: root, encoding: 'utf8' });
  for (const path of stdout.split('\0').filter((each) => each !== '' && !LEFT_OUT.test(each))) {
    if (!existsSync(join(root, path))) continue;
    mkdirSync(dirname(join(copy, path)), { recursive: true });
    cpSync(join(root, path), join(copy, path));
  }
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
}

/** Deletes the folders of a feature, and its lines in the lists. */
function remove(copy: string, name: string): void {
  for (const folder of foldersOf(name)) rmSync(join(copy, folder), { recursive: true, force: true });
  for (const list of LISTS) {
    const path = join(copy, list);
    const text = readFileSync(path, 'utf8');
    const [, variable = ''] = new RegExp(`^import { (\\w+) } from '\\./${name}/`, 'm').exec(text) ?? [];
    const lines = new RegExp(`^(?:(?:im|ex)port .* from '\\./${name}/.*';|  ${variable},)\n`, 'gm');
    writeFileSync(path, text.replaceAll(lines, ''));
  }
}

function linesOf(copy: string): number {
  const texts = globSync('src/**/*.*', { cwd: copy }).map((path) => readFileSync(join(copy, path), 'utf8'));
  return texts.reduce((sum, text) => sum + text.split('\n').length - 1, 0);
}

function run(copy: string, program: string, ...given: string[]): boolean {
  const path = [join(root, 'node_modules/.bin'), process.env['PATH']].join(delimiter);
  const { status } = spawnSync(program, given, { cwd: copy, stdio: 'inherit', env: { ...process.env, PATH: path } });
  print(`${status === 0 ? 'ok' : 'failed'}: ${program} ${given.join(' ')}`);
  return status === 0;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
