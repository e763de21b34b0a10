import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The version of this package, in any program. */
export function packageVersion(): string {
  const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string };
  return manifest.version;
}

/** The folder of this package: a chunk of `dist` is as deep as this file. */
export function packageFolder(): string {
  return fileURLToPath(new URL('..', import.meta.url));
}
