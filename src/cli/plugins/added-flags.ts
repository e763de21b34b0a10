import type { Command } from '@oclif/core/command';
import type { Config } from '@oclif/core/interfaces';

/**
 * Adds the flags of plugins to oclif's description of a command, which is from the build.
 * @param flags undefined for a command that declares none
 */
export function showAddedFlags(described: Command.Loadable | undefined, flags: object | undefined): void {
  for (const [name, flag] of Object.entries(flags ?? {}))
    if (described && !Object.hasOwn(described.flags, name))
      described.flags[name] = { ...(flag as object), name } as never;
}

/** Adds the fields of plugins to the flags and texts of all commands that have them. */
export async function describeAddedFields(config: Config): Promise<void> {
  const own = config.commands.filter(
    (command) => command.pluginName === 'svc-api' && ('tag' in command.flags || 'namesFields' in command),
  );
  await Promise.all(
    own.map(async (command) => {
      const { description, flags } = await command.load();
      Object.assign(command, { description });
      showAddedFlags(command, flags);
      for (const [name, flag] of Object.entries(flags))
        Object.assign(command.flags[name]!, { description: flag.description });
    }),
  );
}
