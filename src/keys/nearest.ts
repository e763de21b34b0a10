import { listOf } from './text.ts';

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
  const wanted = word.toUpperCase().slice(0, MAX_LENGTH);
  return candidates
    .map((candidate) => ({ candidate, distance: distanceOf(wanted, candidate.toUpperCase()) }))
    .filter(({ distance }) => distance <= maxDistance)
    .toSorted((a, b) => a.distance - b.distance)
    .slice(0, maxCount)
    .map(({ candidate }) => candidate);
}

/** `Did you mean EXPIRED? `, with a space behind it; empty where nothing is close. */
export function suggestion(word: string, candidates: readonly string[]): string {
  const close = nearest(word, candidates);
  return close.length > 0 ? `Did you mean ${listOf(close, 'or')}? ` : '';
}

/** Distance of Damerau and Levenshtein, where neighbours may be swapped; 1 if one word is a prefix of the other. */
function distanceOf(word: string, candidate: string): number {
  if (word.length > 2 && (candidate.startsWith(word) || word.startsWith(candidate))) return 1;
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: candidate.length + 1 }, (_, column) => column);
  for (let row = 1; row <= word.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= candidate.length; column += 1) {
      const substitution = previous[column - 1]! + (word[row - 1] === candidate[column - 1] ? 0 : 1);
      const isSwapped = word[row - 1] === candidate[column - 2] && word[row - 2] === candidate[column - 1];
      const swap = row > 1 && column > 1 && isSwapped ? beforePrevious[column - 2]! + 1 : Number.POSITIVE_INFINITY;
      current.push(Math.min(previous[column]! + 1, current[column - 1]! + 1, substitution, swap));
    }
    [beforePrevious, previous] = [previous, current];
  }
  return previous[candidate.length]!;
}
