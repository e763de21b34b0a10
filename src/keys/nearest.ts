/** The candidates closest to a misspelled word by edit distance, best first; none if all are too far. */
export function nearest(word: string, candidates: readonly string[], maxCount = 3): string[] {
  const wanted = word.toUpperCase().slice(0, 64);
  const maxDistance = Math.max(1, Math.ceil(wanted.length / 3));
  return candidates
    .map((candidate) => ({ candidate, distance: distanceOf(wanted, candidate) }))
    .filter(({ distance }) => distance <= maxDistance)
    .toSorted((a, b) => a.distance - b.distance)
    .slice(0, maxCount)
    .map(({ candidate }) => candidate);
}

/** Levenshtein distance; 1 if one word is a prefix of the other. */
function distanceOf(word: string, candidate: string): number {
  if (word.length > 2 && (candidate.startsWith(word) || word.startsWith(candidate))) return 1;
  let previous = Array.from({ length: candidate.length + 1 }, (_, column) => column);
  for (let row = 1; row <= word.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= candidate.length; column += 1) {
      const substitution = previous[column - 1]! + (word[row - 1] === candidate[column - 1] ? 0 : 1);
      current.push(Math.min(previous[column]! + 1, current[column - 1]! + 1, substitution));
    }
    previous = current;
  }
  return previous[candidate.length]!;
}
