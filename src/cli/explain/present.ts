import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Command } from '@oclif/core/command';
import { CommandHelp } from '@oclif/core/help';
import type { Config } from '@oclif/core/interfaces';
import { isParserError, type ParserError, type PresentedError, presentError, shownText } from '../errors.ts';
import { closeTo, didYouMean, explainSpacedList } from './did-you-mean.ts';
import { commandMeant, flagsMeant, settingMeant } from './other-names.ts';
import { wordsBesideCommands } from '../help/topics.ts';
import { commandText, withNamesOf } from '../output.ts';
import { packageFolder } from '../../version.ts';
import { wrapped } from '../wrapped.ts';
import { errorEntry, formatList, printable } from '../../keys/basics/index.ts';

/** Lines are wrapped later, by the width of stderr. */
const UNLIMITED = 100_000;

function usageOf(id: string, config: Config): string[] {
  const command = config.findCommand(id);
  if (!command) return [];
  const typed = { ...command, id: id.replaceAll(':', config.topicSeparator ?? ':') };
  const help = new CommandHelp(typed, config, { sections: ['usage'], maxWidth: UNLIMITED, stripAnsi: true });
  const [, ...lines] = help.generate().split('\n');
  return lines.map((line) => line.trim().replace(/^\$ /, ''));
}

/** The usage of a topic, or of the program if it is empty. */
function topicUsage(topic: string, config: Config): string[] {
  return [topic === '' ? `${config.bin} [COMMAND]` : commandText(config, `${topic}:COMMAND`)];
}

/** The error for a line without a known command, and the command or topic whose usage helps; `''` is the root. */
interface UnknownCommand {
  message: string;
  id: string;
  usage: string[];
}

/**
 * Explains input in place of a command. Words after the wrong one may be values of flags, and are not repeated.
 * @param id the typed words, separated by colons, as in oclif
 * @param help true if help for the command was requested
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
  const close = likelyCommands(rest, { topic, commands, config, help });
  const names = [...new Set(commands.map((command) => command.split(':')[0]!))].toSorted();
  const typed = printable([...known, rest[0]!].join(config.topicSeparator ?? ':'));
  const sentences = [
    `Unknown command: "${typed}".`,
    didYouMean(close),
    names.length === 0
      ? undefined
      : help && topic === ''
        ? `Help is available for ${formatList(names)}.`
        : `The commands of "${commandText(config, topic)}" are ${formatList(names)}.`,
  ];
  const message = sentences.filter((sentence) => sentence !== undefined).join(' ');
  return { message, id: topic, usage: topicUsage(topic, config) };
}

/** The error for unexpected arguments. */
export function unexpectedArguments(args: readonly string[]): string {
  const shown = args.map((arg) => printable(arg)).join(', ');
  const [many, them] = args.length === 1 ? ['', 'it'] : ['s', 'them'];
  return `Unexpected argument${many}: ${shown}. Leave ${them} out, or put a value that has spaces in quotes.`;
}

/** Where to look for the commands that words stand for. */
interface Search {
  topic: string;
  /** The ids of the commands below it, relative to it. */
  commands: readonly string[];
  config: Config;
  /** True for the help of the commands. */
  help?: boolean;
}

/** The commands that words below a topic may stand for, as typed, in quotes, best first. */
function likelyCommands(typed: readonly string[], { topic, commands, config, help = false }: Search): string[] {
  const line = (id: string) => commandText(config, help ? `help:${id}` : id);
  const known = topic === '' ? [] : topic.split(':');
  const meant = commandMeant([...known, ...typed], known.length);
  if (meant && config.findCommand(meant.id))
    return [`"${[line(meant.id), ...(meant.flags !== undefined && !help ? [meant.flags] : [])].join(' ')}"`];
  return closeCommands(typed, commands).map((command) => `"${line([...known, command].join(':'))}"`);
}

/** The commands below a topic that a word may stand for, best first. */
function closeCommands(typed: readonly string[], commands: readonly string[]): string[] {
  // The last one counts: among commands with the same verb, the one about keys.
  const sorted = commands.toSorted((a, b) => Number(a.startsWith('apikey:')) - Number(b.startsWith('apikey:')));
  const verbs = new Map(sorted.map((command) => [command.slice(command.lastIndexOf(':') + 1), command]));
  const [word = ''] = typed;
  const same = verbs.get(word);
  if (same !== undefined) return [same];
  for (let depth = typed.length; depth > 0; depth -= 1) {
    const alike = commands.filter((command) => command.split(':').length === depth);
    const close = closeTo(typed.slice(0, depth).join(':'), alike);
    if (close.length > 0) return close;
  }
  return closeTo(word, [...verbs.keys()]).map((verb) => verbs.get(verb)!);
}

/** The ids of the commands below a topic, relative to it. */
function commandsOf(topic: string, config: Config): string[] {
  const prefix = topic === '' ? '' : `${topic}:`;
  return config.commands
    .filter(({ id, hidden, aliases }) => !hidden && !aliases.includes(id) && id.startsWith(prefix))
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

/** The place of an error. */
interface Place {
  config: Config;
  id: string;
  argv: readonly string[];
}

/** Explains the error in a command's flags or arguments, with a remedy. Values of unknown flags are not repeated. */
function explainParserError(error: ParserError, place: Place): string {
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
  return empty === undefined ? sentence : `${sentence}. Pass --${empty} ${formatExampleValue(flagsOf(place)[empty])}.`;
}

function notAmong(typed: string, choices: readonly string[]): string {
  const question = didYouMean(closeTo(typed, choices));
  return [`"${printable(typed)}" is not one of ${formatList(choices, 'or')}.`, question].filter(Boolean).join(' ');
}

function unknownFlags(typed: readonly string[], place: Place): string {
  const names = [...Object.keys(flagsOf(place)), 'help'];
  const shown = typed.map((flag) => shownFlag(flag, names));
  const words = shown.map((flag) => flag.replace(/^-+/, ''));
  const close = words.flatMap((word) => closeFlags(word, names)).map((name) => `--${name}`);
  const [many, them] = typed.length === 1 ? ['', 'it'] : ['s', 'them'];
  const list = shown.map((flag) => printable(flag)).join(', ');
  const verbs = close.length > 0 ? [] : closeVerbs(shown, place);
  const [setting] = words.flatMap((word) => settingMeant(word) ?? []);
  const otherwise = setting === undefined ? `Leave ${them} out.` : `Set "${setting}" under "server" in svc-api.yaml.`;
  const remedy = didYouMean([...close, ...verbs]) ?? otherwise;
  return `Unknown flag${many}: ${list}. ${remedy}`;
}

/** The flags that a word may stand for, best first. */
function closeFlags(typed: string, names: readonly string[]): string[] {
  const meant = flagsMeant(typed, names);
  return meant.length > 0 ? meant : closeTo(typed, names);
}

/** The remedy for a command typed after a space, in a program with another separator. */
function otherwiseSeparated({ config, id, argv: [verb = ''] }: Place): string | undefined {
  const { bin, topicSeparator } = config;
  if (topicSeparator === ' ' || config.findCommand(`${id}:${verb}`) === undefined) return undefined;
  const command = commandText(config, `${id}:${verb}`);
  return `Commands of ${bin} are written with "${topicSeparator}" between words: "${command}".`;
}

/** Commands that flags may stand for, such as `apikey list` for `apikey --list`. */
function closeVerbs(flags: readonly string[], { config, id }: Place): string[] {
  const verbs = commandsOf(id, config);
  return flags
    .flatMap((flag) => closeTo(flag.replace(/^-+/, ''), verbs))
    .map((verb) => `"${commandText(config, `${id}:${verb}`)}"`);
}

/** An unknown flag without its possible value: `--token=…`, `-p…`. */
function shownFlag(typed: string, names: readonly string[]): string {
  const [name = ''] = typed.split(/[=:\s]/, 1);
  return /^-[^-]/.test(name) && !names.includes(name.slice(1)) ? Array.from(name).slice(0, 2).join('') : name;
}

function tooMany(extra: readonly string[], { config, id, argv }: Place): string {
  const spaced = explainSpacedList(argv, flagsOf({ config, id, argv }), extra[0]!);
  if (spaced !== undefined) return spaced;
  const verbs = commandsOf(id, config);
  // With a colon between topics, an unknown command is an argument of its topic.
  if (verbs.length > 0 && argv[0] === extra[0]) return explainUnknownCommand(`${id}:${extra[0]}`, config).message;
  const question = didYouMean(likelyCommands(extra, { topic: id, commands: verbs, config }));
  return question === undefined
    ? unexpectedArguments(extra)
    : `Unexpected argument: ${printable(extra[0]!)}. ${question}`;
}

function missingArguments(names: readonly string[], { config, id }: Place): string {
  const [usage = ''] = usageOf(id, config);
  const what = names.length === 1 ? 'arg' : 'args';
  return `Missing ${names.length} required ${what}: ${formatList(names)}. Run: ${usage.split(' [-', 1)[0]}`;
}

function flagsOf({ config, id }: Place): Record<string, Command.Flag.Cached> {
  return config.findCommand(id)?.flags ?? {};
}

function formatExampleValue(flag: Command.Flag.Cached | undefined): string {
  const shown = flag?.type === 'option' ? flag.helpValue : undefined;
  return (Array.isArray(shown) ? shown.join(' ') : shown) ?? '<value>';
}

/** The place where a failure is shown. */
export interface Failed extends Place {
  /** The width of stderr; undefined if it is not a terminal. */
  columns: number | undefined;
  /** Lines of usage in place of the command's own. */
  usage?: readonly string[];
  /** The verbs of a topic, for a line without one. */
  verbs?: string;
}

/** A failure in its shown form: `message` in JSON, `text` on stderr. */
export interface ShownFailure extends PresentedError {
  text: string;
}

/** Turns the error of a command into the user's view. */
export function presentFailure(error: unknown, failed: Failed): ShownFailure {
  const presented = presentError(error);
  const message = isParserError(error)
    ? shownText(explainParserError(error, failed))
    : withNamesOf(failed.config, presented.message);
  return { ...presented, message, text: failureText({ ...presented, message }, failed) };
}

/** The text for stderr: the problem, the code, and help. */
export function failureText({ code, message }: Pick<PresentedError, 'code' | 'message'>, failed: Failed): string {
  if (code === 'CANCELLED') return message;
  const error = underneath('Error: ', message.split('\n'), failed.columns);
  if (errorEntry(code)?.page === false) return error;
  return [error, `Code: ${code}`, ...(code === 'USAGE' ? usageLines(failed) : helpWith(code))].join('\n');
}

/**
 * The width of usage lines if stderr is not a terminal. Other lines are not wrapped there, so that programs can read
 * them.
 */
const USAGE_COLUMNS = 100;

function usageLines({ id, config, columns, verbs, usage = usageOf(id, config) }: Failed): string[] {
  return [
    ...(verbs === undefined ? [] : [`Commands of ${commandText(config, id)}:`, verbs]),
    ...(usage.length > 0 ? [underneath('Usage: ', usage, columns ?? USAGE_COLUMNS)] : []),
    `See ${commandText(config, id)} --help`,
  ];
}

/** The page of the package that explains the code. Codes of plugins are explained here. */
function helpWith(code: string): string[] {
  const { feature, isAdded, causes, remedy } = errorEntry(code) ?? {};
  if (isAdded) return [`Common causes: ${causes!.join('; ')}.`, remedy!, `Plugin: ${feature}`].map(shownText);
  return [referenceLine(code)];
}

function referenceLine(code: string): string {
  return `Reference: ${pathToFileURL(join(packageFolder(), 'docs', 'errors.md')).href}#${code.toLowerCase()}`;
}

/** A label with lines, one below the other. */
function underneath(label: string, lines: readonly string[], columns: number | undefined): string {
  return lines.map((line, index) => wrapped(index === 0 ? label : ' '.repeat(label.length), line, columns)).join('\n');
}
