import { globSync } from 'node:fs';

/** What our own program has at its top as well, where in a host it would take names that the host may want. */
const AT_TOP =
  /^apikey:(?=(login|logout|doctor|backup|restore|compact|guard|proxy|routes|notices|federation|edges?)(:|$))/;

/** The shorter id of a command in our own program; undefined for one that has no other. */
export function shortId(id: string): string | undefined {
  return AT_TOP.test(id) ? id.replace(AT_TOP, '') : undefined;
}

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
