import type { Command } from '@oclif/core/command';

/** What is known of a command while it is typed. */
export interface TypedCommand {
  /** Its id, or that of a topic; empty before the first word. */
  id: string;
  /** Undefined for a topic that is no command. */
  command: Command.Loadable | undefined;
  /** The flags that are typed, with their values; empty for those without one. */
  flags: ReadonlyMap<string, string>;
  /** The flag whose value the next word is. */
  pending: string | undefined;
  /** The arguments that are typed. */
  args: readonly string[];
  /** Whether a word was `--`: what follows are arguments, whatever they begin with. */
  isEnded: boolean;
}

/** Reads the words before the cursor as oclif does: the command's own words come first. */
export function readTypedCommand(words: readonly string[], commands: readonly Command.Loadable[]): TypedCommand {
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
  // The words of a command have no colons left over, and what follows it may have some.
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

/** The flag that a word names, and its value if the word has it. */
function flagIn(word: string, command: Command.Loadable | undefined): { flag?: string; value?: string } {
  const [, long, value] = /^--([^=]+)(?:=(.*))?$/s.exec(word) ?? [];
  if (long !== undefined) return value === undefined ? { flag: long } : { flag: long, value };
  const [flag] = Object.entries(command?.flags ?? {}).find(([, { char }]) => char === word[1]) ?? [];
  if (flag === undefined) return {};
  return word.length > 2 ? { flag, value: word.slice(2) } : { flag };
}

/** A command line up to the cursor, as the shell would read it; nothing in it is executed. */
export interface CommandLine {
  /** The variables that are set for the command alone, before its name. */
  variables: Readonly<Record<string, string>>;
  /** The words between the name of the program and the word at the cursor. */
  words: readonly string[];
  /** The word at the cursor, as far as it is typed. */
  word: string;
  /** The quote in which the cursor is, if any. */
  quote: '' | '"' | "'";
  /** The length of what bash keeps of the word: it replaces only what follows an open quote, or one of its breaks. */
  kept: number;
}

interface Options {
  /** What is known of variables. */
  env: NodeJS.ProcessEnv;
  /** The characters after which bash takes the rest of a word for one of its own. */
  breaks?: string | undefined;
}

const ASSIGNMENT = /^([A-Za-z_]\w*)=(.*)$/s;
const VARIABLE = /\$(?:(\w+)|\{(\w+)\})/y;

/** Reads a line of bash, zsh or fish, which quote alike as far as this goes. */
export function readCommandLine(line: string, { env, breaks = '' }: Options): CommandLine {
  const reader = new LineReader(line, env, breaks);
  const words = reader.read();
  const variables: Record<string, string> = {};
  let [word, ...rest] = words.slice(0, -1);
  for (let match = ASSIGNMENT.exec(word ?? ''); match; match = ASSIGNMENT.exec(word ?? '')) {
    variables[match[1]!] = match[2]!;
    [word, ...rest] = rest;
  }
  return { variables, words: rest, word: words.at(-1)!, quote: reader.quote, kept: reader.kept };
}

class LineReader {
  quote: CommandLine['quote'] = '';
  kept = 0;
  readonly #line: string;
  readonly #env: NodeJS.ProcessEnv;
  readonly #breaks: string;
  #words: string[] = [];
  /** Undefined between two words. */
  #word: string | undefined;

  constructor(line: string, env: NodeJS.ProcessEnv, breaks: string) {
    this.#line = line;
    this.#env = env;
    this.#breaks = breaks;
  }

  /** All words; the last one is at the cursor, and may be empty. */
  read(): string[] {
    for (let at = 0; at < this.#line.length;) at += this.#step(at);
    return [...this.#words, this.#word ?? ''];
  }

  /** Reads what is at a place. @returns its length */
  #step(at: number): number {
    const character = this.#line[at]!;
    const next = this.#line[at + 1];
    if (character === '\\' && this.#escapes(next)) return this.#add(next ?? '', 2);
    if (character === this.quote) return this.#setQuote('');
    if (this.quote === '' && (character === '"' || character === "'")) return this.#setQuote(character);
    if (character === '$' && this.quote !== "'") return this.#addVariable(at);
    if (this.quote !== '') return this.#add(character);
    if (/\s/.test(character)) return this.#endWord();
    if (/[;|&]/.test(character)) {
      this.#endWord();
      this.#words = [];
      return 1;
    }
    const isHome = character === '~' && this.#word === undefined && /^[\s/]?$/.test(next ?? '');
    if (isHome) return this.#add(this.#env['HOME'] ?? character, 1);
    this.#add(character);
    if (this.#breaks.includes(character)) this.kept = this.#word!.length;
    return 1;
  }

  /** Whether a backslash takes the meaning of what follows. */
  #escapes(next: string | undefined): boolean {
    if (this.quote === "'") return false;
    return this.quote === '' || (next !== undefined && '$`"\\\n'.includes(next));
  }

  #add(text: string, length = text.length): number {
    this.#word = (this.#word ?? '') + text;
    return length;
  }

  #setQuote(quote: CommandLine['quote']): number {
    this.quote = quote;
    this.#add('');
    this.kept = this.#word!.length;
    return 1;
  }

  /** A variable that is unknown, or an expression, stays as it is. */
  #addVariable(at: number): number {
    VARIABLE.lastIndex = at;
    const [all = '$', plain, braced] = VARIABLE.exec(this.#line) ?? [];
    return this.#add(this.#env[plain ?? braced ?? ''] ?? all, all.length);
  }

  #endWord(): number {
    if (this.#word !== undefined) this.#words.push(this.#word);
    this.#word = undefined;
    this.kept = 0;
    return 1;
  }
}
