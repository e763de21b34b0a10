import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The name, version and license of each package in the bundled files, as their licenses require. */
export function licensesOf(files: readonly string[], root: string): string {
  return foldersOf(files)
    .map((folder) => licenseOf(join(root, folder)))
    .join(`\n${'-'.repeat(80)}\n\n`);
}

/** The folders of the packages that files come from, each once. */
export function foldersOf(files: readonly string[]): string[] {
  const folders = files.flatMap((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? []);
  return [...new Set(folders)].toSorted();
}

function licenseOf(folder: string): string {
  const { name, version, license, author } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    name: string;
    version: string;
    license: string;
    author?: string | { name: string };
  };
  const [file] = globSync('{LICENSE,LICENCE,license,licence}*', { cwd: folder });
  const holder = typeof author === 'string' ? author : author?.name;
  return `${name} ${version}\n\n${file ? readFileSync(join(folder, file), 'utf8').trim() : textOf(license, holder)}\n`;
}

/** The text of a license that a package names without including it. */
function textOf(license: string, holder = 'its authors'): string {
  if (license !== 'MIT') throw new Error(`A bundled package has the license ${license}, and not its text.`);
  return `The MIT License (MIT)\n\nCopyright (c) ${holder}\n\n${MIT}`;
}

const MIT = `Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
associated documentation files (the "Software"), to deal in the Software without restriction, including
without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to the
following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.`;
