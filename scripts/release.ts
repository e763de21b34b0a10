import { execFileSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { sectionOf, unreleasedIn } from './changelog.ts';

/**
 * `npm run release -- [--dry-run] [--no-build] [folder]` builds, packs, tests the packed file, extracts its bill of
 * materials, makes the image, and writes the name of the file to `PUBLISH`, for a separate job that publishes it. With
 * `--dry-run` it tests nothing: it prints the reasons against a release of this state, and the commands that it would
 * run.
 */
const root = fileURLToPath(new URL('..', import.meta.url));
const { values, positionals } = parseArgs({
  options: { 'dry-run': { type: 'boolean' }, 'no-build': { type: 'boolean' } },
  allowPositionals: true,
});
const isDry = values['dry-run'] ?? false;
const folder = resolve(positionals[0] ?? join(root, 'release'));
const { name, version, repository } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  name: string;
  version: string;
  repository: { url: string };
};
const file = (ending: string) => join(folder, `${name}-${version}${ending}`);

const problems = problemsOf();
for (const problem of problems) say(`Not to be released: ${problem}`);
if (problems.length > 0 && !isDry) process.exit(1);

mkdirSync(folder, { recursive: true });
if (!values['no-build']) run('npm', 'run', '--silent', 'build');
run('npm', 'pack', '--ignore-scripts', '--silent', '--pack-destination', folder);
const bom = execFileSync('tar', ['-xzOf', file('.tgz'), 'package/dist/sbom.cdx.json']);
writeFileSync(file('.cdx.json'), bom);
writeFileSync(join(folder, 'PUBLISH'), `${basename(file('.tgz'))}\n`);
ifReleased({ PACKED_FILE: file('.tgz') }, 'npm', 'run', 'test:packed');
run(process.execPath, 'scripts/image.ts', folder);
const made = globSync(['PUBLISH', '*.{tgz,json}'], { cwd: folder });
const sums = made.toSorted().map((each) => `${hash('sha256', readFileSync(join(folder, each)))}  ${each}\n`);
writeFileSync(join(folder, 'SHA256SUMS'), sums.join(''));
ifReleased({}, 'cp', file('-image.tgz'), root);
ifReleased({}, 'docker', 'build', '--file', 'examples/docker/Dockerfile', '--tag', `${name}:${version}`, '.');
say(`${isDry ? 'Would make' : 'Made'} ${name} ${version}, to be published as PUBLISH in ${folder} lists it`);

/** The reasons against a release of this state. */
function problemsOf(): string[] {
  const changelog = readFileSync(join(root, 'CHANGELOG.md'), 'utf8');
  const git = (...args: string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
  return [
    ...(repository.url.includes('/OWNER/') ? ['"repository" in package.json has no owner yet.'] : []),
    ...(sectionOf(changelog, version) ? [] : [`CHANGELOG.md has no section of ${version}: run "npm version".`]),
    ...(unreleasedIn(changelog) === '' ? [] : ['CHANGELOG.md has changes that are not released: run "npm version".']),
    ...(git('status', '--porcelain') === '' ? [] : ['the checkout has changes that are not committed.']),
    ...(git('tag', '--points-at', 'HEAD').split('\n').includes(`v${version}`)
      ? []
      : [`there is no tag v${version} here.`]),
  ];
}

/** Runs a step that has external effects or takes long; a dry run only prints it. */
function ifReleased(env: NodeJS.ProcessEnv, command: string, ...args: string[]): void {
  const set = Object.entries(env).map(([variable, value]) => `${variable}=${value}`);
  if (isDry) say(`Would run: ${[...set, command, ...args].join(' ')}`);
  else execFileSync(command, args, { cwd: root, stdio: 'inherit', env: { ...process.env, ...env } });
}

function run(command: string, ...args: string[]): void {
  execFileSync(command, args, { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] });
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
