import type { Command } from '@oclif/core/command';
import type { Config } from '@oclif/core/interfaces';
import { listOf, printable } from '../../keys/text.ts';
import type { ParserError } from '../errors.ts';
import { closeTo, didYouMean, explainSpacedList } from './did-you-mean.ts';
import { closeCommands, commandsOf, explainUnknownCommand, unexpectedArguments } from './unknown-command.ts';
import { commandText } from '../command-text.ts';
import { usageOf } from './usage.ts';

/** Where an error was met. */
export interface Place {
  config: Config;
  /** The id of the command. */
  id: string;
  /** Its arguments and flags. */
  argv: readonly string[];
}

/** What is wrong with the flags or arguments of a command, and what to do. Values of unknown flags are not repeated. */
export function explainParserError(error: ParserError, place: Place): string {
  const separated = otherwiseSeparated(place);
  if (separated !== undefined) return separated;
  if (error.flags) return unknownFlags(error.flags, place);
  const args: readonly unknown[] = Array.isArray(error.args) ? error.args : [];
  const extra = args.filter((arg) => typeof arg === 'string');
  if (extra.length > 0) return tooMany(extra, place);
  const missing = args.map((arg) => (arg as { name: string }).name);
  if (missing.length > 0) return missingArguments(missing, place);
  const [, , chosen, choices] = /^Expected (--[^=]+=)?(.*) to be one of: (.*)$/ms.exec(error.message) ?? [];
  if (chosen !== undefined) return notAmong(chosen, choices!.split('\n', 1)[0]!.split(', '));
  const sentence = error.message.replace(/\nSee more help with.*$/s, '').trim();
  const [, repeated] = /^Flag --(\S+) can only be specified once$/.exec(sentence) ?? [];
  if (repeated !== undefined) return `${sentence}. Leave the others out.`;
  const [, empty] = /^Flag --(\S+) expects a value$/.exec(sentence) ?? [];
  return empty === undefined ? sentence : `${sentence}. Pass --${empty} ${valueOf(flagsOf(place)[empty])}.`;
}

function notAmong(typed: string, choices: readonly string[]): string {
  const question = didYouMean(closeTo(typed, choices));
  return [`"${printable(typed)}" is not one of ${listOf(choices, 'or')}.`, question].filter(Boolean).join(' ');
}

function unknownFlags(typed: readonly string[], place: Place): string {
  const names = [...Object.keys(flagsOf(place)), 'help'];
  const shown = typed.map((flag) => shownFlag(flag, names));
  const close = shown.flatMap((flag) => closeTo(flag.replace(/^-+/, ''), names)).map((name) => `--${name}`);
  const [many, them] = typed.length === 1 ? ['', 'it'] : ['s', 'them'];
  const list = shown.map((flag) => printable(flag)).join(', ');
  const verbs = close.length > 0 ? [] : closeVerbs(shown, place);
  const remedy = didYouMean([...close, ...verbs]) ?? `Leave ${them} out.`;
  return `Nonexistent flag${many}: ${list}. ${remedy}`;
}

/** What to type for a command after a space, where this program has another separator. */
function otherwiseSeparated({ config, id, argv: [verb = ''] }: Place): string | undefined {
  const { bin, topicSeparator } = config;
  if (topicSeparator === ' ' || config.findCommand(`${id}:${verb}`) === undefined) return undefined;
  const command = commandText(config, `${id}:${verb}`);
  return `The words of a command of ${bin} have "${topicSeparator}" between them: write "${command}".`;
}

/** Commands that flags may stand for, such as `apikey list` for `apikey --list`. */
function closeVerbs(flags: readonly string[], { config, id }: Place): string[] {
  const verbs = commandsOf(id, config);
  return flags
    .flatMap((flag) => closeTo(flag.replace(/^-+/, ''), verbs))
    .map((verb) => `"${commandText(config, `${id}:${verb}`)}"`);
}

/** An unknown flag without what may be its value: `--token=…`, `-p…`. */
function shownFlag(typed: string, names: readonly string[]): string {
  const [name = ''] = typed.split(/[=:\s]/, 1);
  return /^-[^-]/.test(name) && !names.includes(name.slice(1)) ? Array.from(name).slice(0, 2).join('') : name;
}

function tooMany(extra: readonly string[], { config, id, argv }: Place): string {
  const spaced = explainSpacedList(argv, flagsOf({ config, id, argv }), extra[0]!);
  if (spaced !== undefined) return spaced;
  const verbs = commandsOf(id, config);
  // With a colon between topics, a command that does not exist is an argument of its topic.
  if (verbs.length > 0 && argv[0] === extra[0]) return explainUnknownCommand(`${id}:${extra[0]}`, config).message;
  const close = closeCommands(extra, verbs).map((verb) => `"${commandText(config, `${id}:${verb}`)}"`);
  const question = didYouMean(close);
  return question === undefined
    ? unexpectedArguments(extra)
    : `Unexpected argument: ${printable(extra[0]!)}. ${question}`;
}

function missingArguments(names: readonly string[], { config, id }: Place): string {
  const [usage = ''] = usageOf(id, config);
  const what = names.length === 1 ? 'arg' : 'args';
  return `Missing ${names.length} required ${what}: ${listOf(names)}. Run: ${usage.split(' [-', 1)[0]}`;
}

function flagsOf({ config, id }: Place): Record<string, Command.Flag.Cached> {
  return config.findCommand(id)?.flags ?? {};
}

/** How help shows the value of a flag. */
function valueOf(flag: Command.Flag.Cached | undefined): string {
  const shown = flag?.type === 'option' ? flag.helpValue : undefined;
  return (Array.isArray(shown) ? shown.join(' ') : shown) ?? '<value>';
}
