import { KeysError } from './errors.ts';
import { redactSecrets } from './secret/secret.ts';

/** What a line of text may not hold: control characters, line and paragraph separators, and unpaired surrogates. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}\u2028\u2029]/u;
/** The same, and invisible formatting characters, such as direction marks, which can disguise a text. */
const MISLEADING = /[\p{Cc}\p{Cs}\p{Cf}\p{Zl}\p{Zp}]/u;

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
 * Refuses a text to look for that has a NUL: no stored text has one, and PostgreSQL takes none.
 * @throws KeysError INPUT_INVALID
 */
export function refuseNul(text: string): void {
  if (text.includes('\0')) throw new KeysError('INPUT_INVALID', `"${printable(text)}" may not contain U+0000.`);
}

/** Names a character without printing it where it would do harm: `"-" (U+002D)`, or `U+000A` alone. */
export function describeCharacter(character: string): string {
  const number = `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
  return MISLEADING.test(character) || /^[\p{Z}\p{M}\p{DI}]$/u.test(character) ? number : `"${character}" (${number})`;
}

/** A text that is safe to show: secrets redacted, hidden characters named, and cut off after `maxLength` characters. */
export function printable(text: string, maxLength = 60): string {
  const shown = Array.from(redactSecrets(text), (character) =>
    MISLEADING.test(character) ? `<${describeCharacter(character)}>` : character,
  );
  return shown.length > maxLength ? `${shown.slice(0, maxLength).join('')}…` : shown.join('');
}

/** `a`, `a and b`, `a, b and c`. */
export function listOf(items: readonly string[], word = 'and'): string {
  if (items.length < 2) return items.join('');
  return `${items.slice(0, -1).join(', ')} ${word} ${items.at(-1)}`;
}
