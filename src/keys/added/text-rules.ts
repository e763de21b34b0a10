import { anyNumber, hasControlCharacters, type Rule, text } from '../basics/index.ts';

const MAX_TEXT = 300;

/** A line of text. */
export function textUpTo(most: number): Rule<string> {
  return (value, name) =>
    text(value, name) ??
    ((value as string).length > most || hasControlCharacters(value as string)
      ? `must be one line of at most ${most} characters.`
      : undefined);
}

/** A sentence, or a name, of a plugin. */
export const words = textUpTo(MAX_TEXT);

/** A whole number. */
export function whole(min: number, max: number): Rule<number> {
  return (value, name) =>
    anyNumber(value, name) ??
    (Number.isInteger(value) && (value as number) >= min && (value as number) <= max
      ? undefined
      : `is ${value as number}. It must be a whole number from ${min} to ${max}.`);
}
