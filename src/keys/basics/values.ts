import { redactSecrets } from '../secret/index.ts';
import { KeysError } from './errors.ts';

/** What a line of text may not hold: control characters, line and paragraph separators, and unpaired surrogates. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}\u2028\u2029]/u;
/** The same, and invisible formatting characters, such as direction marks, which can disguise a text. */
const MISLEADING = /[\p{Cc}\p{Cs}\p{Cf}\p{Zl}\p{Zp}]/u;
/** The same, without the line breaks between the values of a JSON text. */
const MISLEADING_IN_JSON = /(?!\n)[\p{Cc}\p{Cs}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** The most combining marks in a row that a text may have (UAX #15, section 13). No language needs more. */
export const MAX_MARKS = 30;
const TOO_MANY_MARKS = new RegExp(`(?:^|\\P{M})\\p{M}{${MAX_MARKS + 1}}`, 'u');
/** The most that a text to look for may have, in code points. */
const MAX_SEARCH_LENGTH = 1000;

/** Whether a text has more than `MAX_MARKS` combining marks in a row: normalizing them would take quadratic time. */
export function hasTooManyMarks(text: string): boolean {
  return TOO_MANY_MARKS.test(text);
}

/** A text in NFC; one that has too many combining marks, which no stored text has, stays as it is. */
export function normalizeText(text: string): string {
  return hasTooManyMarks(text) ? text : text.normalize('NFC');
}

/** The length of a text in code points, in which limits are stated. */
export function codePoints(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/** Whether a text holds control characters or unpaired surrogates. */
export function hasControlCharacters(text: string): boolean {
  return UNPRINTABLE.test(text);
}

/**
 * Refuses a text to look for that is too long, or has a NUL: no stored text has one, and PostgreSQL takes none.
 * @throws KeysError INPUT_INVALID
 */
export function checkSearchText(text: string): void {
  const length = codePoints(text);
  if (length > MAX_SEARCH_LENGTH) {
    const message = `"${printable(text)}" is ${length} characters long; at most ${MAX_SEARCH_LENGTH} are allowed.`;
    throw new KeysError('INPUT_INVALID', message);
  }
  if (text.includes('\0')) throw new KeysError('INPUT_INVALID', `"${printable(text)}" may not contain U+0000.`);
}

/** Names a character without printing it where it would do harm: `"-" (U+002D)`, or `U+000A` alone. */
export function describeCharacter(character: string): string {
  const number = `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
  return MISLEADING.test(character) || /[\p{Z}\p{M}\p{DI}]/u.test(character) ? number : `"${character}" (${number})`;
}

/** A text that is safe to show: secrets redacted, hidden characters named, and cut off after `maxLength` characters. */
export function printable(text: string, maxLength = 60): string {
  // The rest of a long text is cut off in any case; so much holds all secrets that are redacted to what is shown.
  const shown = Array.from(redactSecrets(text.slice(0, maxLength * 8)), (character) =>
    MISLEADING.test(character) ? `<${describeCharacter(character)}>` : character,
  );
  return shown.length > maxLength ? `${shown.slice(0, maxLength).join('')}…` : shown.join('');
}

/**
 * JSON that is safe to show: the same values, with hidden characters escaped. `JSON.stringify` leaves direction marks,
 * and U+0080 to U+009F, which terminals obey.
 */
export function printableJson(json: string): string {
  return json.replaceAll(MISLEADING_IN_JSON, (character) =>
    Array.from({ length: character.length }, (_, index) => character.charCodeAt(index))
      .map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`)
      .join(''),
  );
}

/** `a`, `a and b`, `a, b and c`. */
export function formatList(items: readonly string[], word = 'and'): string {
  if (items.length < 2) return items.join('');
  return `${items.slice(0, -1).join(', ')} ${word} ${items.at(-1)}`;
}

/** How much of a word is compared. */
const MAX_LENGTH = 64;

/**
 * The candidates closest to a misspelled word by edit distance, whatever their case, best first.
 * @param maxDistance how far they may be
 */
export function nearest(
  word: string,
  candidates: readonly string[],
  maxCount = 3,
  maxDistance = Math.max(1, Math.ceil(Math.min(word.length, MAX_LENGTH) / 3)),
): string[] {
  const wanted = word.slice(0, MAX_LENGTH).toUpperCase().slice(0, MAX_LENGTH);
  const distanceTo = distancesFrom(wanted, maxDistance);
  return candidates
    .map((candidate) => ({ candidate, distance: distanceTo(candidate.toUpperCase()) }))
    .filter(({ distance }) => distance <= maxDistance)
    .toSorted((a, b) => a.distance - b.distance)
    .slice(0, maxCount)
    .map(({ candidate }) => candidate);
}

/** `Did you mean EXPIRED? `, with a space behind it; empty where nothing is close. */
export function suggestion(word: string, candidates: readonly string[]): string {
  const close = nearest(word, candidates);
  return close.length > 0 ? `Did you mean ${formatList(close, 'or')}? ` : '';
}

/**
 * Distances of Damerau and Levenshtein, where neighbours may be swapped; 1 if one word is a prefix of the other. There
 * may be thousands of candidates.
 * @param most beyond this, a distance need not be exact
 */
function distancesFrom(word: string, most: number): (candidate: string) => number {
  let [beforePrevious, previous, current] = [0, 0, 0].map(() => new Float64Array(MAX_LENGTH + most + 2)) as [
    Float64Array,
    Float64Array,
    Float64Array,
  ];
  return (candidate) => {
    if (word.length > 2 && (candidate.startsWith(word) || word.startsWith(candidate))) return 1;
    const width = candidate.length;
    if (Math.abs(word.length - width) > most) return Number.POSITIVE_INFINITY;
    for (let column = 0; column <= width; column += 1) previous[column] = column;
    for (let row = 1; row <= word.length; row += 1) {
      current[0] = row;
      let least = row;
      for (let column = 1; column <= width; column += 1) {
        const isSame = word.charCodeAt(row - 1) === candidate.charCodeAt(column - 1);
        let distance = previous[column - 1]! + (isSame ? 0 : 1);
        if (previous[column]! + 1 < distance) distance = previous[column]! + 1;
        if (current[column - 1]! + 1 < distance) distance = current[column - 1]! + 1;
        if (
          row > 1 &&
          column > 1 &&
          word.charCodeAt(row - 1) === candidate.charCodeAt(column - 2) &&
          word.charCodeAt(row - 2) === candidate.charCodeAt(column - 1) &&
          beforePrevious[column - 2]! + 1 < distance
        )
          distance = beforePrevious[column - 2]! + 1;
        current[column] = distance;
        if (distance < least) least = distance;
      }
      // A swap goes on from one row before.
      if (least > most + 1) return Number.POSITIVE_INFINITY;
      [beforePrevious, previous, current] = [previous, current, beforePrevious];
    }
    return previous[width]!;
  };
}

/** What is wrong with the value of an option, as the end of a sentence; undefined if nothing is. */
export interface Rule<Value> {
  (value: unknown, name: string): string | undefined;
  /** Only for types: what it lets through. */
  readonly accepts?: Value;
  readonly isRequired?: boolean;
  /** Whether the option may be named with the value undefined, as if it were left out. */
  readonly takesUndefined?: boolean;
}

/** The rule of each option. It is an error of types to leave one out, or to have one of another name or type. */
export type Rules<Options> = {
  readonly [Name in keyof Options]-?: Rule<Exclude<Options[Name], undefined>> &
    (object extends Pick<Options, Name> ? unknown : { readonly isRequired: true });
};

/**
 * Refuses options that cannot be meant: those with another name, with the value undefined, or with one that breaks its
 * rule. Options that were read from somewhere often are undefined by mistake, and what they protect would be open.
 * @param caller what they were given to, such as `openKeys`
 * @param what how they are called where they are not an object
 * @throws KeysError OPTION_INVALID
 */
export function checkOptions<Options>(
  caller: string,
  options: unknown,
  rules: Rules<Options>,
  what = 'The options are',
): void {
  const problem = problemIn(options, rules as Rules<Record<string, unknown>>, what);
  if (problem !== undefined) throw invalidOption(caller, problem);
}

/** The error for options that cannot be meant. @param problem a sentence */
export function invalidOption(caller: string, problem: string): KeysError {
  return new KeysError('OPTION_INVALID', `${caller}: ${problem}`);
}

/** The same options without those that are undefined, for callers whose own ones say what is left out. */
export function withoutUndefined<Options extends object>(options: Options): Options {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Options;
}

function problemIn(
  options: unknown,
  rules: Rules<Record<string, unknown>>,
  what: string,
  path = '',
): string | undefined {
  const names = Object.keys(rules);
  if (!isObject(options)) return `${what} ${kindOf(options)}. Give an object with ${formatList(names)}.`;
  // What it inherits would be checked and then not used, or the other way round.
  if (!isPlain(options)) return `${what} an object of a class. Give a plain object with ${formatList(names)}.`;
  const shown = (name: string) => `"${path}${printable(name)}"`;
  const remedy = (name: string) => (suggestion(name, names) || `The options are ${formatList(names)}.`).trim();
  for (const [name, value] of Object.entries(options)) {
    if (!Object.hasOwn(rules, name)) return `${shown(name)} is not an option. ${remedy(name)}`;
    if (value === undefined && !rules[name]!.takesUndefined)
      return `The option ${shown(name)} is undefined. Leave it out, or give it a value.`;
  }
  for (const [name, rule] of Object.entries(rules)) {
    const { [name]: value } = options;
    if (value === undefined && rule.isRequired) return `The option ${shown(name)} is missing.`;
    const problem = value === undefined ? undefined : rule(value, `${path}${name}`);
    if (problem !== undefined) return /^[A-Z"]/.test(problem) ? problem : `The option ${shown(name)} ${problem}`;
  }
  return undefined;
}

/** A rule by what it lets through, as the end of "must be …". */
function mustBe<Value>(what: string, isRight: (value: unknown) => boolean): Rule<Value> {
  return (value) =>
    isRight(value) ? undefined : `is ${typeof value === 'number' ? value : kindOf(value)}. It must be ${what}.`;
}

/** Text that is not empty. */
export const text: Rule<string> = (value) =>
  typeof value === 'string' && value.trim() === ''
    ? 'is empty. Leave it out, or give it a value.'
    : mustBe('text', (given) => typeof given === 'string')(value, '');
/** Any text, also an empty one, where a rule of its own judges that. */
export const anyText: Rule<string> = mustBe('text', (value) => typeof value === 'string');
/** Text, or a date. */
export const textOrDate: Rule<string | Date> = mustBe(
  'text or a Date',
  (value) => typeof value === 'string' || value instanceof Date,
);
/** A UUID as it is written, in lower case: RFC 9562, section 4. */
export const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
export const uuid: Rule<string> = mustBe('a UUID', (value) => typeof value === 'string' && UUID.test(value));
export const yesOrNo: Rule<boolean> = mustBe('true or false', (value) => typeof value === 'boolean');
/** A number that is not negative; infinity is no bound. */
export const amount: Rule<number> = mustBe('a number from 0 on', (value) => typeof value === 'number' && value >= 0);
/** How many there may be; infinity is no bound. */
export const count: Rule<number> = mustBe(
  'a whole number from 0 on',
  (value) => value === Infinity || (Number.isInteger(value) && (value as number) >= 0),
);
/** A time that timers of Node take. */
export const duration: Rule<number> = mustBe(
  'a number of milliseconds from 0 to 2147483647',
  (value) => typeof value === 'number' && value >= 0 && value <= 2_147_483_647,
);
/** An object whose names are the caller's own. */
export function recordOf<Value>(rule: Rule<Value>): Rule<Readonly<Record<string, Value>>> {
  return (value, name) => {
    if (!isObject(value) || !isPlain(value)) return `is ${kindOf(value)}. It must be a plain object.`;
    for (const [key, item] of Object.entries(value)) {
      const problem = rule(item, `${name}.${printable(key)}`);
      if (problem !== undefined) return /^[A-Z"]/.test(problem) ? problem : `has "${printable(key)}", which ${problem}`;
    }
    return undefined;
  };
}
/** What other code judges. */
// oxlint-disable-next-line typescript/no-explicit-any -- it fits each type
export const anything: Rule<any> = () => undefined;

/** A value of a type that other code looks into, by the names of what it must have. */
export function having<Value>(what: string, ...members: (keyof Value & string)[]): Rule<Value> {
  return mustBe(
    what,
    (value) =>
      (typeof value === 'object' || typeof value === 'function') &&
      value !== null &&
      members.every((member) => member in value),
  );
}

// oxlint-disable-next-line typescript/no-explicit-any -- a function of any type
export function aFunction<Value extends (...values: any[]) => unknown>(): Rule<Value> {
  return mustBe('a function', (value) => typeof value === 'function');
}

/** One of these words. */
export function oneOf<const Word extends string | boolean>(...words: readonly Word[]): Rule<Word> {
  const texts = words.map((word) => (typeof word === 'string' ? `"${word}"` : `${word}`));
  return (value) => {
    if (words.includes(value as Word)) return undefined;
    const candidates = words.flatMap((word) => (typeof word === 'string' ? [word] : []));
    const close = typeof value === 'string' ? suggestion(value, candidates) : '';
    const shown = typeof value === 'string' ? `"${printable(value)}"` : kindOf(value);
    return `is ${shown}. ${close}It must be ${formatList(texts, 'or')}.`;
  };
}

/** A list whose items go by a rule. @param least how many there must be */
export function list<Item>(rule: Rule<Item>, least = 0): Rule<readonly Item[]> {
  return (value, name) => {
    if (!Array.isArray(value)) return `is ${kindOf(value)}. It must be a list.`;
    if (value.length < least) return 'is an empty list. Leave it out, or give it an item.';
    for (const [index, item] of value.entries()) {
      const problem = rule(item, `${name}[${index}]`);
      if (problem !== undefined) return /^[A-Z"]/.test(problem) ? problem : `has an item that ${problem}`;
    }
    return undefined;
  };
}

/** Options within an option. */
export function options<Options>(rules: Rules<Options>): Rule<Options> {
  return (value, name) =>
    problemIn(value, rules as Rules<Record<string, unknown>>, `The option "${name}" is`, `${name}.`);
}

/** What code takes that throws an error which says what is wrong. */
export function readBy<Value>(read: (value: Value) => unknown, rule: Rule<Value>): Rule<Value> {
  return (value, name) => {
    const problem = rule(value, name);
    if (problem !== undefined) return problem;
    try {
      read(value as Value);
      return undefined;
    } catch (error) {
      return `is not valid: ${(error as Error).message}`;
    }
  };
}

/** What may also be null. */
export function orNull<Value>(rule: Rule<Value>): Rule<Value | null> {
  return (value, name) => (value === null ? undefined : rule(value, name));
}

/** What goes by one rule for text, and by another one for all else. */
export function textOr<Value>(rule: Rule<Value>): Rule<string | Value> {
  return (value, name) => (typeof value === 'string' ? text(value, name) : rule(value, name));
}

/** An option that must be given. */
export function required<Value>(rule: Rule<Value>): Rule<Value> & { readonly isRequired: true } {
  return Object.assign((value: unknown, name: string) => rule(value, name), { isRequired: true as const });
}

/** An option that may be undefined, since what it comes from may have nothing to say. */
export function orUndefined<Value>(rule: Rule<Value>): Rule<Value> {
  return Object.assign((value: unknown, name: string) => rule(value, name), { takesUndefined: true });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !('then' in value);
}

/** Whether an object inherits nothing but what all objects do, of whatever realm. */
function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value) as object | null;
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** What a value is, in words, without the value itself. */
export function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  if (value === undefined) return 'undefined';
  if (typeof (value as { then?: unknown }).then === 'function') return 'a promise, which is not awaited';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** The largest page of keys or audit entries. */
export const MAX_PAGE_SIZE = 500;
/** The page size if none is given. */
export const DEFAULT_PAGE_SIZE = 50;

/** What programs take for a formula, in a table that somebody else has filled (CWE-1236). */
const FORMULA = /^\s*[=+\-@|%\uFF1D\uFF0B\uFF0D\uFF20]/;

/** A line of CSV (RFC 4180) in which no cell begins as a formula does. */
export function csvLine(cells: readonly (string | null)[]): string {
  const quoted = cells.map((cell) => {
    const text = cell ?? '';
    return `"${FORMULA.test(text) ? "'" : ''}${text.replaceAll('"', '""')}"`;
  });
  return `${quoted.join(',')}\r\n`;
}

/** Whether an object in a text of JSON has a field twice. Of such a one, `JSON.parse` gives the last value. */
export function hasFieldTwice(text: string, parsed: unknown): boolean {
  return countJson(text).fields !== countFields(parsed);
}

const [QUOTE, BACKSLASH, COLON, COMMA, BRACKET, BRACE] = Array.from('"\\:,[{', (character) => character.charCodeAt(0));

/**
 * How many fields objects have in a text of JSON, also those that are there twice, and how many values there are at
 * most: by its colons, commas and brackets outside of strings.
 */
export function countJson(text: string): { fields: number; values: number } {
  let [fields, values] = [0, 1];
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charCodeAt(at);
    if (character === QUOTE) at = endOfString(text, at);
    else if (character === COLON) fields += 1;
    else if (character === COMMA || character === BRACKET || character === BRACE) values += 1;
  }
  return { fields, values };
}

/** Where a string ends that begins here in a text of JSON. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    const character = text.charCodeAt(at);
    if (character === BACKSLASH) at += 1;
    else if (character === QUOTE) return at;
  }
  return text.length;
}

/** How many fields the objects in a value have, however deep they nest. */
export function countFields(value: unknown): number {
  let count = 0;
  const left = [value];
  while (left.length > 0) {
    const part = left.pop();
    if (typeof part !== 'object' || part === null) continue;
    const parts: unknown[] = Array.isArray(part) ? part : Object.values(part);
    if (parts !== part) count += parts.length;
    for (const each of parts) if (typeof each === 'object') left.push(each);
  }
  return count;
}
