import { normalizeArgv } from '@oclif/core/help';
import type { Command } from '@oclif/core/command';
import type { Config } from '@oclif/core/interfaces';

/** The command that the arguments of the process name, if any. */
export function typedCommand(config: Config): Command.Loadable | undefined {
  return config.findCommand(normalizeArgv(config)[0] ?? '');
}
