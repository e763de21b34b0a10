import { yieldToEventLoop } from '../basics/index.ts';
import type { AuditCount, AuditReader, AuditSelection } from './audit-reader.ts';

/** How many entries there are in each period. */
export interface AuditHistogram {
  /** The periods with entries, earliest first. */
  counts: AuditCount[];
  /** False if there were too many entries: only the newest were counted. */
  isComplete: boolean;
}

/** How many entries are looked at, at most, and how many at a time. */
const [MAX_ENTRIES, SLICE_ENTRIES] = [50_000, 5000];

/**
 * Counts the entries that match, by periods. In a long log, only the newest of the selected time are counted.
 * @param selection with both of its times
 * @param periodMs the length of a period
 */
export async function countEntries(
  log: AuditReader,
  selection: AuditSelection & { since: number; until: number },
  periodMs: number,
): Promise<AuditHistogram> {
  const first = await firstFrom(log, selection.since);
  const end = await firstFrom(log, selection.until);
  const from = Math.max(first, end - MAX_ENTRIES);
  const counts = new Map<number, AuditCount>();
  for (let before = end; before > from; before -= SLICE_ENTRIES) {
    const after = Math.max(from, before - SLICE_ENTRIES) - 1;
    for (const { start, entries, refused } of await log.count({ ...selection, after, before }, periodMs)) {
      const sum = counts.get(start) ?? { start, entries: 0, refused: 0 };
      counts.set(start, { start, entries: sum.entries + entries, refused: sum.refused + refused });
    }
    await yieldToEventLoop();
  }
  return { counts: [...counts.values()].toSorted((a, b) => a.start - b.start), isComplete: from === first };
}

/** The number of the first entry written at this time or later. Entries are in the order of time. */
async function firstFrom(log: AuditReader, time: number): Promise<number> {
  const [start, head] = [await log.start(), await log.head()];
  let [low, high] = [(start?.number ?? 0) + 1, (head?.number ?? 0) + 1];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const found = await log.timeFrom(middle);
    if (found && found.at < time) low = found.number + 1;
    else high = middle;
  }
  return low;
}
