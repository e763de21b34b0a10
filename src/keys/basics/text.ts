import { redactSecrets } from '../secret/index.ts';
import { KeysError } from './errors.ts';

/** Characters that a line of text cannot hold: control characters, line and paragraph separators, unpaired surrogates. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}\u2028\u2029]/u;
/** Like `UNPRINTABLE`, with invisible formatting characters such as direction marks, which can disguise a text. */
const MISLEADING = /[\p{Cc}\p{Cs}\p{Cf}\p{Zl}\p{Zp}]/u;
/** Like `MISLEADING`, without the line breaks between the values of a JSON text. */
const MISLEADING_IN_JSON = /(?!\n)[\p{Cc}\p{Cs}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** The most combining marks in a row in a text (UAX #15, section 13). No language needs more. */
export const MAX_MARKS = 30;
const TOO_MANY_MARKS = new RegExp(`(?:^|\\P{M})\\p{M}{${MAX_MARKS + 1}}`, 'u');
/** The longest search text, in code points. */
const MAX_SEARCH_LENGTH = 1000;

/** Finds more than `MAX_MARKS` combining marks in a row: normalizing them would take quadratic time. */
export function hasTooManyMarks(text: string): boolean {
  return TOO_MANY_MARKS.test(text);
}

/** A text in NFC. A text with too many combining marks, which no stored text has, is returned unchanged. */
export function normalizeText(text: string): string {
  return hasTooManyMarks(text) ? text : text.normalize('NFC');
}

/** The length of a text in code points, the unit of length limits. */
export function codePoints(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/** Finds control characters and unpaired surrogates in a text. */
export function hasControlCharacters(text: string): boolean {
  return UNPRINTABLE.test(text);
}

/**
 * Refuses a search text that is too long or has a NUL: no stored text has one, and PostgreSQL accepts none.
 * @throws KeysError INPUT_INVALID
 */
export function checkSearchText(text: string): void {
  const length = codePoints(text);
  if (length > MAX_SEARCH_LENGTH) {
    const message = `"${printable(text)}" is ${length} characters long; at most ${MAX_SEARCH_LENGTH} are allowed.`;
    throw new KeysError('INPUT_INVALID', message);
  }
  if (text.includes('\0')) throw new KeysError('INPUT_INVALID', `"${printable(text)}" must not contain U+0000.`);
}

/** A text of several lines in one line. */
export function inOneLine(text: string): string {
  return text.replaceAll(/\s*[\n\t]\s*/g, ' ');
}

/** Names a character without printing it if that could do harm: `"-" (U+002D)`, or `U+000A` alone. */
export function describeCharacter(character: string): string {
  const number = `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
  return MISLEADING.test(character) || /[\p{Z}\p{M}\p{DI}]/u.test(character) ? number : `"${character}" (${number})`;
}

/** A text that is safe to show: secrets redacted, hidden characters named, and cut off after `maxLength` characters. */
export function printable(text: string, maxLength = 60): string {
  // A long text is cut off anyway; this length includes all secrets that would be redacted within the shown part.
  const shown = Array.from(redactSecrets(text.slice(0, maxLength * 8)), (character) =>
    MISLEADING.test(character) ? `<${describeCharacter(character)}>` : character,
  );
  return shown.length > maxLength ? `${shown.slice(0, maxLength).join('')}…` : shown.join('');
}

/**
 * JSON that is safe to show: the same values, with hidden characters escaped. `JSON.stringify` does not escape
 * direction marks, nor U+0080 to U+009F, which terminals interpret.
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

/** The error for an id that no key has. */
export function noKeyWithId(id: string): KeysError {
  return new KeysError('NOT_FOUND', `There is no API key with the id "${printable(id)}".`);
}
