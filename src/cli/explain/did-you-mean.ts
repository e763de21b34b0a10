import { nearest } from '../../keys/nearest.ts';
import { holdsSecret } from '../../keys/secret/secret.ts';
import { listOf } from '../../keys/text.ts';

/** The words that may have been meant by what was typed, best first. What may be a secret is not compared. */
export function closeTo(typed: string, words: readonly string[]): string[] {
  return holdsSecret(typed) ? [] : nearest(typed, words, 3, Math.max(1, Math.floor(typed.length / 3)));
}

/** `Did you mean --roles?`; undefined without words. */
export function didYouMean(words: readonly string[]): string | undefined {
  return words.length > 0 ? `Did you mean ${listOf([...new Set(words)], 'or')}?` : undefined;
}
