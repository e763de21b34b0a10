import { globSync } from 'node:fs';
import { shortId } from '../src/cli/short-id.ts';

export interface CommandFile {
  readonly id: string;
  readonly file: string;
}

/** The commands of our own program by all of their ids, with the file of each. */
export function ownCommands(root: string): CommandFile[] {
  return globSync('src/commands/**/*.ts', { cwd: root })
    .toSorted()
    .flatMap((file) => {
      const id = idOf(file);
      return [id, shortId(id) ?? []].flat().map((each) => ({ id: each, file }));
    });
}

/** `src/commands/apikey/index.ts` is `apikey`. */
function idOf(file: string): string {
  return file.replace(/^src\/commands\/(.*?)(\/index)?\.ts$/, '$1').replaceAll('/', ':');
}
