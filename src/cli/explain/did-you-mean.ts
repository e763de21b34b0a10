import { nearest } from '../../keys/nearest.ts';
import { holdsSecret } from '../../keys/secret/secret.ts';
import { listOf } from '../../keys/text.ts';

/** No name of a command or flag is as long. */
const MAX_LENGTH = 40;

/** The words that may have been meant by what was typed, best first. What may be a secret is not compared. */
export function closeTo(typed: string, words: readonly string[]): string[] {
  if (typed.length > MAX_LENGTH || holdsSecret(typed)) return [];
  return nearest(typed, words, 3, Math.max(1, Math.floor(typed.length / 3)));
}

/** `Did you mean --roles?`; undefined without words. */
export function didYouMean(words: readonly string[]): string | undefined {
  return words.length > 0 ? `Did you mean ${listOf([...new Set(words)], 'or')}?` : undefined;
}
