import type { Command } from '@oclif/core/command';
import type { CommandLine } from './command-line.ts';
import { WHERE, wordsOfFlag } from '../../../cli/input/key-flags.ts';
import { COLUMN_NAMES } from '../../../cli/views/key-view.ts';
import { AUDIT_ACTIONS, AUDIT_OUTCOMES } from '../../../keys/audit/index.ts';
import { PERIODS, STATUSES } from '../../../keys/key/index.ts';
import { KEY_SORTS } from '../../../keys/lists/index.ts';
import type { Catalog } from '../../../keys/permissions/index.ts';
import { hasControlCharacters } from '../../../keys/basics/index.ts';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

/** A word to offer at the cursor. */
interface Choice {
  /** The part of the word after what all choices have in common. */
  text: string;
  description?: string;
}

/** Words to offer at the cursor, each the common prefix with one of the choices. */
interface Choices {
  head: string;
  choices: readonly Choice[];
  /** The words continue, so no space follows. */
  isOpen?: boolean;
}

const MAX_DESCRIPTION = 80;

/** Formats a reply for the script of a shell: its kind, then a word in each line, with a description after a tab. */
export function formatReply(reply: 'files' | 'folders' | Choices, shell: Shell, line: CommandLine): string {
  if (typeof reply === 'string') return `${reply}\n`;
  const { head, choices, isOpen = false } = reply;
  // Text without control characters is a single line.
  const safe = choices.filter(({ text }) => !hasControlCharacters(head + text));
  if (safe.length === 0) return '';
  const lines = safe.map(({ text, description }) => {
    const word = head + text;
    if (shell === 'bash') return quotedForBash(word.slice(line.kept), line.quote);
    return [word, ...(description === undefined ? [] : [shortened(description)])].join('\t');
  });
  return [isOpen ? 'open' : 'words', ...lines].map((each) => `${each}\n`).join('');
}

/** bash takes words as they are, into the quotes that are open. The other shells quote them. */
function quotedForBash(word: string, quote: CommandLine['quote']): string {
  if (quote === "'") return word.replaceAll("'", String.raw`'\''`);
  if (quote === '"') return word.replaceAll(/["$`\\]/g, String.raw`\$&`);
  return word.replaceAll(/[^\p{L}\p{M}\p{N}_\-./:=,@%+]/gu, String.raw`\$&`);
}

/** The first line of a description, without control characters. */
function shortened(description: string): string {
  const [line = ''] = description.split('\n', 1);
  const shown = Array.from(line.replaceAll(/\p{C}/gu, ' '));
  return shown.length > MAX_DESCRIPTION ? `${shown.slice(0, MAX_DESCRIPTION - 1).join('')}…` : shown.join('');
}

/** Kinds of values: files, folders, names of keys, roles, permissions, a few fixed texts, or what can be explained. */
type ValueKind = 'files' | 'folders' | 'names' | 'roles' | 'permissions' | 'explained' | readonly string[];

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

const KINDS_OF_FLAGS: Readonly<Record<string, ValueKind>> = {
  database: 'files',
  config: 'files',
  file: 'files',
  to: 'files',
  'secrets-dir': 'folders',
  name: 'names',
  key: 'names',
  actor: 'names',
  owner: 'names',
  parent: 'names',
  'restore-revoked': 'names',
  roles: 'roles',
  permissions: 'permissions',
  permission: 'permissions',
  status: STATUSES.map((status) => status.toLowerCase()),
  action: AUDIT_ACTIONS,
  outcome: AUDIT_OUTCOMES,
  columns: COLUMN_NAMES,
  sort: KEY_SORTS.map((sort) => sort.toLowerCase().replace('_', '-')),
  activate: ['now', 'on-first-use'],
  by: PERIODS.map((period) => period.toLowerCase()),
};

const KINDS_OF_ARGUMENTS: Readonly<Record<string, ValueKind>> = {
  name: 'names',
  file: 'files',
  path: 'files',
  target: 'explained',
  detail: 'permissions',
};

/** The kind of a flag's value; undefined for any text. */
function kindOfFlag(flag: string): ValueKind | undefined {
  const name = flag.startsWith(WHERE) ? flag.slice(WHERE.length) : flag;
  return Object.hasOwn(KINDS_OF_FLAGS, name) ? KINDS_OF_FLAGS[name] : wordsOfFlag(name);
}

/** The kind of an argument; undefined for any text. */
function kindOfArgument(argument: string): ValueKind | undefined {
  return Object.hasOwn(KINDS_OF_ARGUMENTS, argument) ? KINDS_OF_ARGUMENTS[argument] : undefined;
}

/** Checks whether a command takes the name of a new key, for which there is nothing to offer. */
function namesNewKey(command: string, flags: ReadonlyMap<string, string>): boolean {
  if (command === 'apikey:exec') return true;
  const creates = ['apikey:create', 'apikey:add'].includes(command) || (command === 'apikey' && !flags.has('delete'));
  return creates && !flags.has('overwrite');
}

/** The completions at the cursor. */
interface Offer {
  /** The fixed start of the word, such as `--roles=ADMIN,`. */
  head: string;
  typed: string;
  database?: string | undefined;
  /** The address of a server in its place. */
  server?: string | undefined;
  /** The configuration that the line names. */
  config?: string | undefined;
  kind: ValueKind | { choices: readonly Choice[] };
}

/** The words that belong to a program: its commands, and what separates their parts. */
interface Program {
  commands: readonly Command.Loadable[];
  separator: string;
  /** Further words in place of a command, with summaries, and after `help`. */
  wordsBeside?: (help: boolean) => ReadonlyMap<string, string>;
}

/** Finds completions for the cursor of a line; undefined if any text is possible. */
export function offerFor({ words, word }: CommandLine, program: Program): Offer | undefined {
  const { commands, wordsBeside = () => new Map() } = program;
  // Hidden commands, such as long names with a short form, are completed but not offered.
  const shown = commands.filter(({ hidden }) => !hidden);
  // `help` is followed by a command's words.
  const isHelp = words[0] === 'help';
  const typed = readTypedCommand(isHelp ? words.slice(1) : words, commands);
  const offer = offerAt(word, typed, { ...program, commands: shown, wordsBeside: () => wordsBeside(isHelp) });
  const { id, args, flags } = typed;
  // The keys that can be brought back are those of the backup.
  const backup = /(^|:)restore$/.test(id) && offer?.kind === 'names' ? args[0] : undefined;
  const database = backup ?? flags.get('database');
  return offer && { ...offer, database, server: flags.get('server'), config: flags.get('config') };
}

function offerAt(word: string, typed: TypedCommand, program: Program): Offer | undefined {
  const { command, pending, flags, args, isEnded } = typed;
  if (pending !== undefined) return valueOffer('', word, typed, pending);
  if (!isEnded && word.startsWith('-')) {
    const equals = word.indexOf('=');
    if (equals === -1) return { head: '', typed: word, kind: { choices: flagChoices(typed) } };
    const { flag = '' } = flagIn(word, command);
    return valueOffer(word.slice(0, equals + 1), word.slice(equals + 1), typed, flag);
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
  // The detail of a request is its URL.
  if (name === 'detail' && METHODS.includes(args[0]!)) return undefined;
  return { head: '', typed, kind };
}

function flagChoices({ command, flags }: TypedCommand): Choice[] {
  const choices = Object.entries(command?.flags ?? {})
    .filter(
      ([flag, { hidden, ...definition }]) =>
        !hidden && (!flags.has(flag) || ('multiple' in definition && definition.multiple)),
    )
    .map(([flag, { summary, description }]) => toChoice(`--${flag}`, summary ?? description));
  return [...choices, toChoice('--help', 'Show help.')];
}

/** Words that can follow the parts of a command, or all commands if their parts are not separate words. */
function commandChoices(id: string, { commands, separator, wordsBeside }: Program): Choice[] {
  if (separator !== ' ') return id === '' ? commands.map((command) => toChoice(command.id, summaryOf(command))) : [];
  const beside = id === '' ? [...(wordsBeside?.(false) ?? [])] : [];
  const start = id === '' ? '' : `${id}:`;
  const nested = commands.filter((command) => command.id.startsWith(start));
  const words = new Set(nested.map((command) => command.id.slice(start.length).split(':', 1)[0]!));
  return [
    ...Array.from(words, (word) => toChoice(word, summaryOf(commands.find((each) => each.id === start + word)))),
    ...beside.map(([word, summary]) => toChoice(word, summary)),
  ];
}

function summaryOf(command: Command.Loadable | undefined): string | undefined {
  return command?.summary ?? command?.description;
}

function toChoice(text: string, description: string | undefined): Choice {
  return { text, ...(description !== undefined && { description }) };
}

/** Slow sources, queried only when needed. */
interface Sources {
  /** Names of keys that begin with a text. */
  names(start: string): Promise<readonly string[]>;
  catalog(): Promise<Catalog>;
}

/** The choices of an offer, or what kind of path the shell is to complete. */
export async function resolveOffer(offer: Offer, sources: Sources): Promise<'files' | 'folders' | Choices> {
  const { head, typed, kind } = offer;
  if (kind === 'files' || kind === 'folders') return kind;
  if (kind === 'names') return { head, choices: textChoices(await sources.names(typed)) };
  if (kind === 'explained') {
    const words = [...(await sources.names(typed).catch(() => [])), ...startingWith(typed, METHODS)];
    return words.length === 0 ? 'files' : { head, choices: textChoices(words) };
  }
  if (kind === 'roles') return { head, choices: textChoices(startingWith(typed, (await sources.catalog()).roles)) };
  if (kind === 'permissions') return permissionChoices(offer, await sources.catalog());
  if ('choices' in kind) return { head, choices: kind.choices.filter(({ text }) => text.startsWith(typed)) };
  return { head, choices: textChoices(startingWith(typed, kind)) };
}

/** A resource with its colon or, after that, an action. */
function permissionChoices({ head, typed }: Offer, { offered, actions }: Catalog): Choices {
  const colon = typed.indexOf(':') + 1;
  const values = colon > 0 ? actions : offered.map((resource) => `${resource}:`);
  const fitting = startingWith(typed.slice(colon), values);
  return { head: head + typed.slice(0, colon), choices: textChoices(fitting), isOpen: colon === 0 };
}

function startingWith(typed: string, values: readonly string[]): string[] {
  return values.filter((value) => value.startsWith(typed));
}

function textChoices(texts: readonly string[]): Choice[] {
  return texts.map((text) => ({ text }));
}

/** A command as typed so far. */
interface TypedCommand {
  /** Its id, or that of a topic; empty before the first word. */
  id: string;
  /** Undefined for a topic that is not a command. */
  command: Command.Loadable | undefined;
  /** The flags that are typed, with their values; empty for those without one. */
  flags: ReadonlyMap<string, string>;
  /** The flag whose value the next word is. */
  pending: string | undefined;
  /** The arguments that are typed. */
  args: readonly string[];
  /** A word was `--`, so everything after it is an argument. */
  isEnded: boolean;
}

/** Reads the words before the cursor as oclif does: the command's own words come first. */
function readTypedCommand(words: readonly string[], commands: readonly Command.Loadable[]): TypedCommand {
  const parts = words.flatMap((word) => (word.startsWith('-') ? [word] : word.split(':')));
  let [id, length] = ['', 0];
  for (const part of parts) {
    const longer = id === '' ? part : `${id}:${part}`;
    if (!commands.some((command) => command.id === longer || command.id.startsWith(`${longer}:`))) break;
    id = longer;
    length += 1;
  }
  const command = commands.find((each) => each.id === id);
  const flags = new Map<string, string>();
  const args: string[] = [];
  let [pending, isEnded]: [string | undefined, boolean] = [undefined, false];
  // The words of a command contain no colons, but later words can.
  for (const word of restOf(words, length)) {
    if (pending !== undefined) {
      flags.set(pending, word);
      pending = undefined;
    } else if (isEnded || !/^-./.test(word)) args.push(word);
    else if (word === '--') isEnded = true;
    else {
      const { flag, value } = flagIn(word, command);
      if (flag === undefined) continue;
      flags.set(flag, value ?? '');
      if (value === undefined && command?.flags[flag]?.type === 'option') pending = flag;
    }
  }
  return { id, command, flags, pending, args, isEnded };
}

/** The words after the command, which has so many parts. */
function restOf(words: readonly string[], parts: number): readonly string[] {
  let [index, seen] = [0, 0];
  for (; seen < parts; index += 1) seen += words[index]!.split(':').length;
  return words.slice(index);
}

function flagIn(word: string, command: Command.Loadable | undefined): { flag?: string; value?: string } {
  const all = Object.entries(command?.flags ?? {});
  const [, long, value] = /^--([^=]+)(?:=(.*))?$/s.exec(word) ?? [];
  if (long !== undefined) {
    const [flag = long] = all.find(([, { aliases }]) => aliases?.includes(long)) ?? [];
    return value === undefined ? { flag } : { flag, value };
  }
  const [flag] = all.find(([, { char }]) => char === word[1]) ?? [];
  if (flag === undefined) return {};
  return word.length > 2 ? { flag, value: word.slice(2) } : { flag };
}
