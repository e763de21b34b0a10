import { formatList } from './text.ts';

/** The length to which words are compared. */
const MAX_LENGTH = 64;

/**
 * The candidates closest to a misspelled word by edit distance, ignoring case, best first.
 * @param maxDistance the largest distance
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

/** `Did you mean EXPIRED? `, with a trailing space; empty if nothing is close. */
export function suggestion(word: string, candidates: readonly string[]): string {
  const close = nearest(word, candidates);
  return close.length > 0 ? `Did you mean ${formatList(close, 'or')}? ` : '';
}

/**
 * Damerau-Levenshtein distances; 1 if one word is a prefix of the other. Fast enough for thousands of candidates.
 * @param most above this, a distance need not be exact
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
      // A swap can still continue from the row before.
      if (least > most + 1) return Number.POSITIVE_INFINITY;
      [beforePrevious, previous, current] = [previous, current, beforePrevious];
    }
    return previous[width]!;
  };
}
