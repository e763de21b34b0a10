import type { Connection } from './connection.ts';
import { searchTextOf } from './rows.ts';

/** How many keys are looked at to tell what is rare, and for how long, in milliseconds, that is taken to hold. */
const [SAMPLE_KEYS, SAMPLE_MS] = [500, 60_000];
/** A part is rare if no more of those keys have it. */
const RARE_KEYS = 5;
/** How many parts of a search are considered, and for how many the index is asked. */
const [MAX_PARTS, ASKED_PARTS] = [16, 4];
/** What every index of trigrams has as one, in whatever locale. */
const TRIGRAM = /^[A-Z0-9]{3}$/;

interface Sample {
  readAt: number;
  texts: Promise<string[]>;
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
  return [...parts]
    .slice(0, MAX_PARTS)
    .map((part) => ({ part, keys: texts.filter((other) => other.includes(part)).length }))
    .filter(({ keys }) => keys <= RARE_KEYS)
    .toSorted((one, other) => one.keys - other.keys)
    .slice(0, ASKED_PARTS)
    .map(({ part }) => part);
}

/** What some keys are searched by: those that come first in the order of the ids, which are random. */
function sampleOf(connection: Connection): Promise<string[]> {
  const known = samples.get(connection);
  if (known && performance.now() - known.readAt < SAMPLE_MS) return known.texts;
  const texts = connection.run(async (db) => {
    const rows = await db.selectFrom('api_keys').select('search_text').orderBy('id').limit(SAMPLE_KEYS).execute();
    return rows.map((row) => row.search_text);
  });
  samples.set(connection, { readAt: performance.now(), texts });
  texts.catch(() => samples.delete(connection)); // Who waits for it is told.
  return texts;
}
