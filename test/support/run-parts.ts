import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The scripts that V8 ran. */
interface Coverage {
  result: { url: string }[];
}

/**
 * The files that a program loaded, such as those of a package in `node_modules`.
 * @param folder what NODE_V8_COVERAGE was for a program that has ended
 */
export function runParts(folder: string): string[] {
  return readdirSync(folder)
    .map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as Coverage)
    .flatMap(({ result }) => result.map(({ url }) => url));
}
