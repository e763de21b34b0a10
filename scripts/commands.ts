import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ownCommands } from './own-commands.ts';

/** The commands of our own program by their ids, from the sources: for `bin/dev.js`. */
const root = fileURLToPath(new URL('..', import.meta.url));
export const commands = Object.fromEntries(
  await Promise.all(
    ownCommands(root).map(async ({ id, file }) => {
      const module = (await import(join(root, file))) as { default: unknown };
      return [id, module.default] as const;
    }),
  ),
);
