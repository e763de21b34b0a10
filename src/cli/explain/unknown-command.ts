import type { Config } from '@oclif/core/interfaces';
import { listOf, printable } from '../../keys/text.ts';
import { closeTo, didYouMean } from './did-you-mean.ts';
import { commandText } from '../command-text.ts';
import { wordsBesideCommands } from '../help/topics.ts';
import { topicUsage, usageOf } from './usage.ts';

/** What is wrong with a line that names no command, and the command or topic whose usage helps; `''` is the root. */
export interface UnknownCommand {
  message: string;
  id: string;
  usage: string[];
}

/**
 * Explains what was typed where a command was expected. Of words after the one that is wrong, which may be the values
 * of flags, nothing is repeated.
 * @param id the words as typed, separated by colons, which is how oclif has them
 * @param help whether help for the command was asked for
 */
export function explainUnknownCommand(id: string, config: Config, help = false): UnknownCommand {
  const words = id.split(':');
  if (id.startsWith('-')) return { message: explainFlag(id, config), id: '', usage: topicUsage('', config) };
  const known = knownPart(words, config);
  const rest = words.slice(known.length);
  const topic = known.join(':');
  const commands = [...commandsOf(topic, config), ...(topic === '' ? wordsBesideCommands(config, help).keys() : [])];
  if (commands.length === 0 && !help)
    return { message: unexpectedArguments(rest), id: topic, usage: usageOf(topic, config) };
  const line = (command: string) => commandText(config, help ? `help:${command}` : command);
  const prefix = topic === '' ? '' : `${topic}:`;
  const close = closeCommands(rest, commands).map((command) => `"${line(prefix + command)}"`);
  const names = [...new Set(commands.map((command) => command.split(':')[0]!))].toSorted();
  const typed = printable([...known, rest[0]!].join(config.topicSeparator ?? ':'));
  const sentences = [
    `There is no command "${typed}".`,
    didYouMean(close),
    names.length === 0
      ? undefined
      : help && topic === ''
        ? `There is help on ${listOf(names)}.`
        : `The commands of "${commandText(config, topic)}" are ${listOf(names)}.`,
  ];
  const message = sentences.filter((sentence) => sentence !== undefined).join(' ');
  return { message, id: topic, usage: topicUsage(topic, config) };
}

/** Says that arguments are too many. */
export function unexpectedArguments(args: readonly string[]): string {
  const shown = args.map((arg) => printable(arg)).join(', ');
  const [many, them] = args.length === 1 ? ['', 'it'] : ['s', 'them'];
  return `Unexpected argument${many}: ${shown}. Leave ${them} out, or put a value that has spaces in quotes.`;
}

/** The commands below a topic that a word may stand for, best first. */
export function closeCommands(typed: readonly string[], commands: readonly string[]): string[] {
  for (let depth = typed.length; depth > 0; depth -= 1) {
    const alike = commands.filter((command) => command.split(':').length === depth);
    const close = closeTo(typed.slice(0, depth).join(':'), alike);
    if (close.length > 0) return close;
  }
  const verbs = new Map(commands.map((command) => [command.slice(command.lastIndexOf(':') + 1), command]));
  return closeTo(typed[0] ?? '', [...verbs.keys()]).map((verb) => verbs.get(verb)!);
}

/** The ids of the commands below a topic, relative to it. */
export function commandsOf(topic: string, config: Config): string[] {
  const prefix = topic === '' ? '' : `${topic}:`;
  return config.commands
    .filter(({ id, hidden }) => !hidden && id.startsWith(prefix))
    .map(({ id }) => id.slice(prefix.length));
}

function knownPart(words: readonly string[], config: Config): string[] {
  const isKnown = (id: string) => config.findCommand(id) !== undefined || config.findTopic(id) !== undefined;
  const count = words.findIndex((_, index) => !isKnown(words.slice(0, index + 1).join(':')));
  return words.slice(0, count < 0 ? words.length - 1 : count);
}

function explainFlag(flag: string, config: Config): string {
  const [name = ''] = flag.split(/[=:\s]/, 1);
  const close = closeTo(name.replace(/^-+/, ''), ['help', 'version']).map((word) => `--${word}`);
  const remedy =
    didYouMean(close) ?? `Flags come after the command, as in: ${commandText(config, 'apikey:list')} --json`;
  return `The first argument is the flag ${printable(name)}, not a command. ${remedy}`;
}
