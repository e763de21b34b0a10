import { execFileSync } from 'node:child_process';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { withVersion } from './changelog.ts';

/**
 * Called by npm in `npm version <new>`, before it commits and tags: moves the unreleased changes in the changelog to
 * the section of that version, and updates the name of the packed file in pages.
 */
const root = fileURLToPath(new URL('..', import.meta.url));
const { npm_old_version: previous = '', npm_new_version: version = '' } = process.env;
const change = (path: string, from: (text: string) => string) =>
  writeFileSync(`${root}${path}`, from(readFileSync(`${root}${path}`, 'utf8')));

change('CHANGELOG.md', (text) => withVersion(text, version, new Date().toISOString().slice(0, 10)));
const paths = ['docs/**/*.md', 'examples/**/*.{md,json,yml}'];
for (const path of globSync(paths, { cwd: root, exclude: ['**/node_modules'] }))
  change(path, (text) => text.replaceAll(`svc-api-${previous}.tgz`, `svc-api-${version}.tgz`));
execFileSync('npm', ['run', '--silent', 'build'], { cwd: root, stdio: 'inherit' });
execFileSync('git', ['add', '--update'], { cwd: root });
