import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const READING = /\breadFileSync\(new URL\('(\.\/[\w-]+\.graphql)', import\.meta\.url\), 'utf8'\)/g;

/** A source for a bundle, with the texts of files that it reads from beside itself inserted. */
export function embedded(path: string, source: string): string {
  return source.replaceAll(READING, (_, file: string) =>
    JSON.stringify(readFileSync(join(dirname(path), file), 'utf8')),
  );
}
