import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const READING = /\breadFileSync\(new URL\('(\.\/[\w-]+\.graphql)', import\.meta\.url\), 'utf8'\)/g;

/** A source for a bundle, beside which no other files are: texts that it reads from beside itself stand in it. */
export function embedded(path: string, source: string): string {
  return source.replaceAll(READING, (_, file: string) =>
    JSON.stringify(readFileSync(join(dirname(path), file), 'utf8')),
  );
}
