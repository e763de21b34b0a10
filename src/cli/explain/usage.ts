import { CommandHelp } from '@oclif/core/help';
import type { Config } from '@oclif/core/interfaces';

/** Lines are wrapped later, by the width of stderr. */
const UNLIMITED = 100_000;

/** A command as it is typed: with the name of the program, and its separator between topics. */
export function commandLine(config: Config, id: string): string {
  return id === '' ? config.bin : `${config.bin} ${id.replaceAll(':', config.topicSeparator ?? ':')}`;
}

/** The lines of a command's usage, as help has them. */
export function usageOf(id: string, config: Config): string[] {
  const command = config.findCommand(id);
  if (!command) return [];
  const typed = { ...command, id: id.replaceAll(':', config.topicSeparator ?? ':') };
  const help = new CommandHelp(typed, config, { sections: ['usage'], maxWidth: UNLIMITED, stripAnsi: true });
  const [, ...lines] = help.generate().split('\n');
  return lines.map((line) => line.trim().replace(/^\$ /, ''));
}

/** The usage of a topic, or of the program if it is empty. */
export function topicUsage(topic: string, config: Config): string[] {
  return [topic === '' ? `${config.bin} [COMMAND]` : commandLine(config, `${topic}:COMMAND`)];
}
