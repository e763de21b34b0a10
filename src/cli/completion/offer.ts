import type { Command } from '@oclif/core/command';
import type { CommandLine } from './command-line.ts';
import { readTypedCommand, type TypedCommand } from './typed-command.ts';
import { kindOfArgument, kindOfFlag, namesNewKey, type ValueKind } from './value-kinds.ts';

/** A word that may stand at the cursor. */
export interface Choice {
  /** The part of the word after what all choices have in common. */
  text: string;
  description?: string;
}

/** What may stand at the cursor. */
export interface Offer {
  /** What the word begins with in any case, such as `--roles=ADMIN,`. */
  head: string;
  /** What is typed of the rest. */
  typed: string;
  /** The store that the line names. */
  database?: string | undefined;
  /** The address of a server in its place. */
  server?: string | undefined;
  /** The configuration that the line names. */
  config?: string | undefined;
  kind: ValueKind | { choices: readonly Choice[] };
}

/** The words that belong to a program: its commands, and what separates their parts. */
export interface Program {
  commands: readonly Command.Loadable[];
  separator: string;
  /** Other words that may stand in place of a command, with summaries, and after `help`. */
  wordsBeside?: (help: boolean) => ReadonlyMap<string, string>;
}

/** What may stand at the cursor of a line; undefined if any text may. */
export function offerFor({ words, word }: CommandLine, program: Program): Offer | undefined {
  const { commands, wordsBeside = () => new Map() } = program;
  const shown = commands.filter(({ hidden }) => !hidden);
  // `help` is followed by a command's words.
  const isHelp = words[0] === 'help';
  const typed = readTypedCommand(isHelp ? words.slice(1) : words, shown);
  const offer = offerAt(word, typed, { ...program, commands: shown, wordsBeside: () => wordsBeside(isHelp) });
  const { id, args, flags } = typed;
  // The keys that can be brought back are those of the backup.
  const backup = id === 'restore' && offer?.kind === 'names' ? args[0] : undefined;
  const database = backup ?? flags.get('database');
  return offer && { ...offer, database, server: flags.get('server'), config: flags.get('config') };
}

function offerAt(word: string, typed: TypedCommand, program: Program): Offer | undefined {
  const { command, pending, flags, args, isEnded } = typed;
  if (pending !== undefined) return valueOffer('', word, typed, pending);
  if (!isEnded && word.startsWith('-')) {
    const equals = word.indexOf('=');
    if (equals === -1) return { head: '', typed: word, kind: { choices: flagChoices(typed) } };
    return valueOffer(word.slice(0, equals + 1), word.slice(equals + 1), typed, word.slice(2, equals));
  }
  if (args.length === 0 && flags.size === 0 && !isEnded) {
    const choices = commandChoices(typed.id, program);
    if (choices.length > 0) return { head: '', typed: word, kind: { choices } };
  }
  if (!command || (isEnded && command.strict === false)) return undefined;
  return argumentOffer(word, typed, command);
}

function valueOffer(
  head: string,
  typed: string,
  { id, command, flags }: TypedCommand,
  flag: string,
): Offer | undefined {
  const definition = command?.flags[flag];
  if (definition?.type !== 'option') return undefined;
  const kind = definition.options ?? kindOfFlag(flag);
  if (kind === undefined || (flag === 'name' && namesNewKey(id, flags))) return undefined;
  if (!definition.delimiter) return { head, typed, kind };
  // In a list, the item after the last comma is completed.
  const item = typed.lastIndexOf(',') + 1;
  return { head: head + typed.slice(0, item), typed: typed.slice(item), kind };
}

function argumentOffer(typed: string, { id, flags, args }: TypedCommand, command: Command.Loadable): Offer | undefined {
  const all = Object.entries(command.args);
  const [name, definition] = all[args.length] ?? all.findLast(([, { multiple }]) => multiple) ?? [];
  if (name === undefined) return undefined;
  const kind = definition?.options ?? kindOfArgument(name);
  if (kind === undefined || (name === 'name' && namesNewKey(id, flags))) return undefined;
  return { head: '', typed, kind };
}

function flagChoices({ command, flags }: TypedCommand): Choice[] {
  const choices = Object.entries(command?.flags ?? {})
    .filter(
      ([flag, { hidden, ...definition }]) =>
        !hidden && (!flags.has(flag) || ('multiple' in definition && definition.multiple)),
    )
    .map(([flag, { summary, description }]) => choiceOf(`--${flag}`, summary ?? description));
  return [...choices, choiceOf('--help', 'Show help.')];
}

/** The words that may follow the parts of a command, or all commands where their parts are no words of their own. */
function commandChoices(id: string, { commands, separator, wordsBeside }: Program): Choice[] {
  if (separator !== ' ') return id === '' ? commands.map((command) => choiceOf(command.id, summaryOf(command))) : [];
  const beside = id === '' ? [...(wordsBeside?.(false) ?? [])] : [];
  const start = id === '' ? '' : `${id}:`;
  const beneath = commands.filter((command) => command.id.startsWith(start));
  const words = new Set(beneath.map((command) => command.id.slice(start.length).split(':', 1)[0]!));
  return [
    ...Array.from(words, (word) => choiceOf(word, summaryOf(commands.find((each) => each.id === start + word)))),
    ...beside.map(([word, summary]) => choiceOf(word, summary)),
  ];
}

function summaryOf(command: Command.Loadable | undefined): string | undefined {
  return command?.summary ?? command?.description;
}

function choiceOf(text: string, description: string | undefined): Choice {
  return { text, ...(description !== undefined && { description }) };
}
