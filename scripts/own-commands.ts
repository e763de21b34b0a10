import { globSync } from 'node:fs';

/** Files of commands, of the core and of features. */
export const COMMAND_FILES = ['src/commands/**/*.ts', 'src/features/*/commands/**/*.ts'];

export interface CommandFile {
  readonly id: string;
  readonly file: string;
  /** The feature with the command; undefined for the core. */
  readonly feature: string | undefined;
}

/** Our commands, with the file of each. */
export function ownCommands(root: string): CommandFile[] {
  return globSync(COMMAND_FILES, { cwd: root })
    .map((file) => ({ id: idOf(file), file, feature: /^src\/features\/([^/]+)/.exec(file)?.[1] }))
    .toSorted((a, b) => (a.id < b.id ? -1 : 1));
}

/**
 * The id of `src/commands/apikey/index.ts` is `apikey`, and of `src/features/scan/commands/apikey/scan.ts`
 * `apikey:scan`.
 */
function idOf(file: string): string {
  return file.replace(/^.*?\/commands\/(.*?)(\/index)?\.ts$/, '$1').replaceAll('/', ':');
}
