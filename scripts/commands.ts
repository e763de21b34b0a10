import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { shortId } from '../src/cli/short-id.ts';
import { ownCommands } from './own-commands.ts';

/** The commands of our own program by id, from the sources, for `bin/dev.js`. */
const root = fileURLToPath(new URL('..', import.meta.url));
const loaded = await Promise.all(
  ownCommands(root).map(async ({ id, file }) => {
    const { default: command } = (await import(join(root, file))) as { default: { isAtTop?: boolean } };
    return [id, shortId({ ...command, id }) ?? []].flat().map((each) => [each, command] as const);
  }),
);
export const commands = Object.fromEntries(loaded.flat());
