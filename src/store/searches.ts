import { setImmediate } from 'node:timers/promises';

/**
 * A search, piece by piece: SQLite reads in this process, and nothing else runs meanwhile. It returns what it found.
 */
export type Search<Found> = AsyncGenerator<void, Found>;

/**
 * What the first of several searches for the same found. Each gets as much time as the others, so that it takes no
 * longer than twice the fastest of two would by itself. Between the pieces, others have a turn.
 */
export async function firstFound<Found>(searches: readonly Search<Found>[]): Promise<Found> {
  const entrants = searches.map((search) => ({ search, spentMs: 0 }));
  for (;;) {
    const next = entrants.reduce((least, entrant) => (entrant.spentMs < least.spentMs ? entrant : least));
    const began = performance.now();
    const step = await next.search.next();
    if (step.done) return step.value;
    next.spentMs += performance.now() - began;
    await setImmediate();
  }
}
