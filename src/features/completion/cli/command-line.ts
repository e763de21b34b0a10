/** A command line up to the cursor, as the shell would read it; nothing in it is executed. */
export interface CommandLine {
  /** The variables that are set for the command alone, before its name. */
  variables: Readonly<Record<string, string>>;
  words: readonly string[];
  /** The word at the cursor, as far as it is typed. */
  word: string;
  /** The quote in which the cursor is, if any. */
  quote: '' | '"' | "'";
  /** The length of what bash keeps of the word: it replaces only what follows an open quote, or one of its breaks. */
  kept: number;
}

interface Options {
  /** Environment variables. */
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

  /** Reads all words. The last one is at the cursor, and can be empty. */
  read(): string[] {
    for (let at = 0; at < this.#line.length;) at += this.#step(at);
    return [...this.#words, this.#word ?? ''];
  }

  /** Reads the item at a position. @returns its length */
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

  /** Checks whether a backslash escapes the next character. */
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
