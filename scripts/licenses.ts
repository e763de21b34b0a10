import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The name, version and license of each package that the bundled files come from: their licenses ask for that. */
export function licensesOf(files: readonly string[], root: string): string {
  const folders = files.flatMap((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? []);
  return [...new Set(folders)]
    .toSorted()
    .map((folder) => licenseOf(join(root, folder)))
    .join(`\n${'-'.repeat(80)}\n\n`);
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
  const text = file ? readFileSync(join(folder, file), 'utf8').trim() : `${license}, by ${holder ?? 'its authors'}`;
  return `${name} ${version}\n\n${text}\n`;
}
