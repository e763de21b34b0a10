import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** V8's coverage: the scripts that ran. */
interface Coverage {
  result: { url: string }[];
}

/**
 * The files that a program loaded, such as a package's in `node_modules`.
 * @param folder NODE_V8_COVERAGE of a program that has ended
 */
export function runParts(folder: string): string[] {
  return readdirSync(folder)
    .map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as Coverage)
    .flatMap(({ result }) => result.map(({ url }) => url));
}
