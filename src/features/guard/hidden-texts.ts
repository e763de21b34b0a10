import { Transform } from 'node:stream';

/** Maximum depth of nested encodings of different kinds: entities in the JSON of a page, as `\u0026#43;`. */
const MAX_DEPTH = 2;
/** Maximum number of times a percent sign is encoded again, in an address within another. */
const MAX_PERCENT = 5;
/** Maximum number of zeros before the number of an entity. */
const MAX_ZEROS = 6;
/** The names of entities that frameworks write for printable ASCII. */
const ENTITIES: Readonly<Record<string, readonly string[]>> = {
  '"': ['quot', 'QUOT'],
  '&': ['amp', 'AMP'],
  "'": ['apos'],
  '<': ['lt', 'LT'],
  '>': ['gt', 'GT'],
  '+': ['plus'],
  '/': ['sol'],
  '=': ['equals'],
  '!': ['excl'],
  '#': ['num'],
  $: ['dollar'],
  '%': ['percnt'],
  '(': ['lpar'],
  ')': ['rpar'],
  '*': ['ast', 'midast'],
  ',': ['comma'],
  '.': ['period'],
  ':': ['colon'],
  ';': ['semi'],
  '?': ['quest'],
  '@': ['commat'],
  '[': ['lsqb', 'lbrack'],
  '\\': ['bsol'],
  ']': ['rsqb', 'rbrack'],
  '^': ['Hat'],
  _: ['lowbar'],
  '`': ['grave', 'DiacriticalGrave'],
  '{': ['lcub', 'lbrace'],
  '|': ['vert', 'verbar', 'VerticalLine'],
  '}': ['rcub', 'rbrace'],
};

/** Looks for texts of printable ASCII in another text, as they are, and as frameworks encode them. */
class Look {
  readonly #text: string;
  /** The text ended before the match was decided. */
  isCut = false;

  /** @param text bytes as Latin-1 */
  constructor(text: string) {
    this.#text = text;
  }

  /** Finds the end of a text that starts here, if it does. */
  endOf(sought: string, from: number): number | undefined {
    let ends = [from];
    for (const char of sought) {
      ends = ends.length === 1 ? this.#afterChar(char, ends[0]!) : this.#afterEach(char, ends);
      if (ends.length === 0) return undefined;
    }
    return Math.max(...ends);
  }

  #afterEach(char: string, starts: readonly number[]): number[] {
    return [...new Set(starts.flatMap((start) => this.#afterChar(char, start)))];
  }

  /** Possible ends of a character that starts here: an escape can also be literal text. */
  #afterChar(char: string, at: number, depth = MAX_DEPTH): number[] {
    const here = this.#text[at];
    if (here === undefined) {
      this.isCut = true;
      return [];
    }
    const ends = here === char ? [at + 1] : [];
    const isSpace = here === '+' && char === ' ';
    if (depth === 0 || !(here === '%' || here === '\\' || here === '&' || isSpace)) return ends;
    const deeper = depth - 1;
    const hex = char.charCodeAt(0).toString(16).padStart(2, '0');
    if (char === ' ') ends.push(...this.#afterChar('+', at, deeper));
    for (const start of this.#afterChar('%', at, deeper)) ends.push(...this.#afterPercent(hex, start));
    for (const start of this.#afterChar('\\', at, deeper)) {
      if (!/[\da-z]/i.test(char)) ends.push(...this.#afterChar(char, start, deeper));
      ends.push(...this.#after(`u00${hex}`, start), ...this.#after(`x${hex}`, start));
    }
    for (const start of this.#afterChar('&', at, deeper)) ends.push(...this.#afterEntity(char, hex, start, deeper));
    return ends;
  }

  /** @param hex the encoded byte @param at position after the percent sign */
  #afterPercent(hex: string, at: number): number[] {
    const ends: number[] = [];
    for (let start = at, times = 0; times < MAX_PERCENT; times += 1) {
      ends.push(...this.#after(hex, start));
      const [next] = this.#after('25', start);
      if (next === undefined) break;
      start = next;
    }
    return ends;
  }

  /** @param at behind the ampersand */
  #afterEntity(char: string, hex: string, at: number, depth: number): number[] {
    const names = (ENTITIES[char] ?? []).flatMap((name) => this.#after(name, at, false));
    const numbers = this.#afterChar('#', at, depth).flatMap((start) => [
      ...this.#afterZeros(`${char.charCodeAt(0)}`, start),
      ...this.#after('x', start).flatMap((digits) => this.#afterZeros(hex, digits)),
    ]);
    return [...names, ...numbers].flatMap((end) => this.#afterChar(';', end, depth));
  }

  #afterZeros(digits: string, at: number): number[] {
    let start = at;
    while (start < at + MAX_ZEROS && this.#text[start] === '0') start += 1;
    return this.#after(digits, start);
  }

  /** The end of literal letters and digits that start here. */
  #after(sought: string, at: number, ignoresCase = true): number[] {
    for (const [index, char] of Array.from(sought).entries()) {
      const here = this.#text[at + index];
      if (here === undefined) {
        this.isCut = true;
        return [];
      }
      if (here !== char && !(ignoresCase && here.toLowerCase() === char)) return [];
    }
    return [at + sought.length];
  }
}

/** Leading characters that a regular expression searches for, since most places do not match. */
const LED_BY = 4;
/** Maximum length of these in bytes, in any encoding. */
const LEAD_BYTES = 256;

/** All forms of a character, as the source of a regular expression: those that `Look` follows. */
function formsOf(char: string, depth = MAX_DEPTH): string {
  const literal = /[\w -]/.test(char) ? char : `\\${char}`;
  if (depth === 0) return literal;
  const [percent, backslash, ampersand, sharp, semicolon] = Array.from('%\\&#;', (each) => formsOf(each, depth - 1));
  const hex = char.charCodeAt(0).toString(16).padStart(2, '0');
  const caseless = hex.replaceAll(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`);
  const itself = /[\da-z]/i.test(char) ? [] : [formsOf(char, depth - 1)];
  const zeros = `0{0,${MAX_ZEROS}}`;
  const number = `${sharp}${zeros}(?:${char.charCodeAt(0)}|[xX]${zeros}${caseless})`;
  return `(?:${[
    literal,
    ...(char === ' ' ? [formsOf('+', depth - 1)] : []),
    `${percent}(?:25){0,${MAX_PERCENT - 1}}${caseless}`,
    `${backslash}(?:${[...itself, `[uU]00${caseless}`, `[xX]${caseless}`].join('|')})`,
    `${ampersand}(?:${[...(ENTITIES[char] ?? []), number].join('|')})${semicolon}`,
  ].join('|')})`;
}

/** A stretch of a text. */
interface Stretch {
  readonly from: number;
  readonly to: number;
}

/** Makes some texts of printable ASCII out of others into stars, as they are, and as frameworks encode them. */
export class HiddenTexts {
  readonly #sought: readonly { readonly text: string; readonly lead: RegExp }[];

  /** @param texts of some characters each */
  constructor(texts: readonly string[]) {
    this.#sought = texts.map((text) => ({
      text,
      lead: new RegExp(Array.from(text.slice(0, LED_BY), (char) => formsOf(char)).join(''), 'g'),
    }));
  }

  /** Replaces them in a text by asterisks, keeping its length. */
  hide(text: string): string {
    let hidden = text;
    for (const { from, to } of this.#find(text).found)
      hidden = hidden.slice(0, from) + '*'.repeat(to - from) + hidden.slice(to);
    return hidden;
  }

  /** Replaces the texts in a stream of bytes by asterisks, even across chunks. */
  stream(): Transform {
    let held: Buffer = Buffer.alloc(0);
    return new Transform({
      transform: (chunk: Buffer, _encoding, done) => {
        const data = Buffer.concat([held, chunk]);
        const { found, cutFrom } = this.#find(data.toString('latin1'));
        for (const { from, to } of found) data.fill('*', from, to);
        held = data.subarray(cutFrom);
        done(null, data.subarray(0, cutFrom));
      },
      flush: (done) => done(null, held),
    });
  }

  /** Finds them, and the start of one that may continue in the next chunk. @param text bytes as Latin-1 */
  #find(text: string): { found: Stretch[]; cutFrom: number } {
    const found: Stretch[] = [];
    let cutFrom = text.length;
    for (const { text: sought, lead } of this.#sought) {
      // The end may cut the leading characters.
      const tail = Math.max(0, text.length - LEAD_BYTES);
      let at = 0;
      while (at < text.length) {
        lead.lastIndex = at;
        const from = at >= tail ? at : Math.min(lead.exec(text)?.index ?? tail, tail);
        const look = new Look(text);
        const to = look.endOf(sought, from);
        if (to !== undefined) found.push({ from, to });
        else if (look.isCut) cutFrom = Math.min(cutFrom, from);
        at = to ?? from + 1;
      }
    }
    return { found, cutFrom };
  }
}
