import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** What V8 says of a script: how often each function was called. */
interface Coverage {
  result: { url: string; functions: { functionName: string; ranges: { count: number }[] }[] }[];
}

/**
 * The modules of the bundled program that were run, such as `src/log.ts`: each is a function there.
 * @param folder what NODE_V8_COVERAGE was for a program that has ended
 */
export function runParts(folder: string): string[] {
  return readdirSync(folder)
    .map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as Coverage)
    .flatMap(({ result }) => result)
    .filter(({ url }) => url.endsWith('/dist/program.cjs'))
    .flatMap(({ functions }) => functions)
    .filter(({ functionName, ranges }) => /^(?:src|node_modules)\//.test(functionName) && ranges[0]!.count > 0)
    .map(({ functionName }) => functionName);
}
