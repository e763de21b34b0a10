import type { Command } from '@oclif/core/command';
import type { Config } from '@oclif/core/interfaces';

/** Adds the flags of plugins to oclif's description of a command, which is from the build. */
export function showAddedFlags(described: Command.Loadable | undefined, flags: object): void {
  for (const [name, flag] of Object.entries(flags))
    if (described && !Object.hasOwn(described.flags, name))
      described.flags[name] = { ...(flag as object), name } as never;
}

/** Adds the flags of plugins to all commands that have them. */
export async function showAllAddedFlags(config: Config): Promise<void> {
  const own = config.commands.filter(({ pluginName, flags }) => pluginName === 'svc-api' && 'tag' in flags);
  await Promise.all(own.map(async (command) => showAddedFlags(command, (await command.load()).flags)));
}
