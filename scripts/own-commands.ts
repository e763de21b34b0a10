import { globSync } from 'node:fs';
import { shortId } from '../src/cli/short-id.ts';

/** Files of commands: those of the core, and those of features. */
export const COMMAND_FILES = ['src/commands/**/*.ts', 'src/features/*/commands/**/*.ts'];

export interface CommandFile {
  readonly id: string;
  readonly file: string;
}

/** The commands of our own program by all of their ids, with the file of each. */
export function ownCommands(root: string): CommandFile[] {
  return globSync(COMMAND_FILES, { cwd: root })
    .map((file) => ({ id: idOf(file), file }))
    .toSorted((a, b) => (a.id < b.id ? -1 : 1))
    .flatMap(({ id, file }) => [id, shortId(id) ?? []].flat().map((each) => ({ id: each, file })));
}

/** `src/commands/apikey/index.ts` is `apikey`, `src/features/guard/commands/guard.ts` is `guard`. */
function idOf(file: string): string {
  return file.replace(/^.*?\/commands\/(.*?)(\/index)?\.ts$/, '$1').replaceAll('/', ':');
}
