import type { Connection } from './connection.ts';
import { searchTextOf } from './rows.ts';

/** How many keys are looked at to tell what is rare, and for how long, in milliseconds, that is taken to hold. */
const [SAMPLE_KEYS, SAMPLE_MS] = [500, 60_000];
/** A part is rare if it is in them no more than so many times. */
const RARE_TIMES = 5;
/** How many parts of a search are considered, and for how many the index is asked. */
const [MAX_PARTS, ASKED_PARTS] = [16, 4];
/** What every index of trigrams has as one, in whatever locale. */
const TRIGRAM = /^[A-Z0-9]{3}$/;

interface Sample {
  readAt: number;
  /** What the keys are searched by, one after another; undefined while there are fewer. */
  texts: Promise<string | undefined>;
}

const samples = new WeakMap<Connection, Sample>();

/**
 * The parts of a text that fewest keys have, by a sample of them; none where no part is rare. An index has a list of
 * keys for each trigram, and those of what is in most names are long: it is faster without them.
 */
export async function rarePartsOf(connection: Connection, search: string): Promise<string[]> {
  const text = searchTextOf({ name: search, description: null });
  // What distinguishes names from one another is mostly at their end.
  const starts = Array.from({ length: Math.max(0, text.length - 2) }, (_, index) => text.length - 3 - index);
  const parts = new Set(starts.map((start) => text.slice(start, start + 3)).filter((part) => TRIGRAM.test(part)));
  if (parts.size === 0) return [];
  const texts = await sampleOf(connection);
  if (texts === undefined) return [];
  return [...parts]
    .slice(0, MAX_PARTS)
    .map((part) => ({ part, times: timesIn(texts, part) }))
    .filter(({ times }) => times <= RARE_TIMES)
    .toSorted((one, other) => one.times - other.times)
    .slice(0, ASKED_PARTS)
    .map(({ part }) => part);
}

/** What some keys are searched by: those that come first in the order of the ids, which are random. */
function sampleOf(connection: Connection): Promise<string | undefined> {
  const known = samples.get(connection);
  if (known && performance.now() - known.readAt < SAMPLE_MS) return known.texts;
  const texts = connection.run(async (db) => {
    const rows = await db.selectFrom('api_keys').select('search_text').orderBy('id').limit(SAMPLE_KEYS).execute();
    // Few keys tell nothing of what may be many soon, and are found soon in any way.
    return rows.length < SAMPLE_KEYS ? undefined : rows.map((row) => row.search_text).join('\n');
  });
  samples.set(connection, { readAt: performance.now(), texts });
  texts.catch(() => samples.delete(connection)); // Who waits for it is told.
  return texts;
}

/** How often a part is in a text, as far as that is needed. */
function timesIn(text: string, part: string): number {
  let times = 0;
  for (let at = text.indexOf(part); at !== -1 && times <= RARE_TIMES; at = text.indexOf(part, at + 1)) times += 1;
  return times;
}
