import { type Kysely, sql, type SqlBool } from 'kysely';
import type { ListPosition } from '../keys/repository.ts';
import { yieldToEventLoop } from '../keys/yielding.ts';
import type { Connection } from './connection.ts';
import { searchTextOf } from './rows.ts';
import { type Condition, selectKeys } from './select-keys.ts';
import type { ApiKeyTable, Tables } from './tables.ts';

/**
 * A search, piece by piece: SQLite reads in this process, and nothing else runs meanwhile. It returns what it found.
 */
export type Search<Found> = AsyncGenerator<void, Found>;

/** How much time a search through an index gets for each millisecond of the one through all rows. */
const INDEX_SHARE = 3;

/**
 * What the first of several searches for the same found: the one through all rows, which comes first, or one through an
 * index, which gets more time, as most that is looked for is rare. Where that is the fastest, this takes a third more
 * time than it would by itself. Between the pieces, others have a turn.
 */
export async function firstFound<Found>([through, ...byIndex]: readonly Search<Found>[]): Promise<Found> {
  const entrants = [
    { search: through!, share: 1, spent: 0 },
    ...byIndex.map((search) => ({ search, share: INDEX_SHARE, spent: 0 })),
  ];
  for (;;) {
    const next = entrants.reduce((least, entrant) => (entrant.spent < least.spent ? entrant : least));
    const began = performance.now();
    const step = await next.search.next();
    if (step.done) return step.value;
    next.spent += (performance.now() - began) / next.share;
    await yieldToEventLoop();
  }
}

/** How many keys are looked at to tell what is rare, and for how long, in milliseconds, that is taken to hold. */
const [SAMPLE_KEYS, SAMPLE_MS] = [500, 60_000];
/** A part is rare if it is in them no more than so many times. */
const RARE_TIMES = 5;
/** How many parts of a search are considered, and for how many the index is asked. */
const [MAX_PARTS, ASKED_PARTS] = [16, 4];
/** What every index of trigrams has as one, in whatever locale. */
const PLAIN_TRIGRAM = /^[A-Z0-9]{3}$/;

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
  const parts = new Set(starts.map((start) => text.slice(start, start + 3)).filter((part) => PLAIN_TRIGRAM.test(part)));
  if (parts.size === 0) return [];
  const texts = await findSample(connection);
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
function findSample(connection: Connection): Promise<string | undefined> {
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

/** A search that may read all keys reads so many at a time. */
const SLICE_KEYS = 1000;

/** A part of the keys, in their order, and how many of it are needed. */
export interface KeySlice {
  after?: ListPosition | undefined;
  upTo?: ListPosition | undefined;
  limit: number;
}

/** Reads those of the keys in a slice that are asked for, in their order, if they fulfil one more condition. */
export type ReadSlice = (db: Kysely<Tables>, slice: KeySlice, among?: Condition) => Promise<ApiKeyTable[]>;

/**
 * The keys that `read` finds in a search through all that match `condition`, slice by slice until there are enough.
 * PostgreSQL finds the next that match without anybody waiting; SQLite is asked for a slice of all.
 */
export async function* searchSlices(
  connection: Connection,
  { after, limit }: KeySlice,
  condition: Condition,
  read: ReadSlice,
): Search<ApiKeyTable[]> {
  const found: ApiKeyTable[] = [];
  const inSlice: Condition = connection.dialect === 'sqlite' ? (row) => row.lit(true) : condition;
  for (let start = after; ;) {
    const position = start;
    const upTo = await connection.run((db) => lastOfSlice(db, position, inSlice));
    const slice = { after: position, upTo, limit: limit - found.length };
    found.push(...(await connection.run((db) => read(db, slice))));
    if (!upTo || found.length >= limit) return found;
    start = upTo;
    yield;
  }
}

async function lastOfSlice(
  db: Kysely<Tables>,
  after: ListPosition | undefined,
  inSlice: Condition,
): Promise<ListPosition | undefined> {
  const row = await selectKeys(db, { after }, inSlice)
    .select(['created_at', 'id'])
    .offset(SLICE_KEYS - 1)
    .limit(1)
    .executeTakeFirst();
  return row && positionOf(row);
}

/** Where a key stands in their order. */
export function positionOf(row: Pick<ApiKeyTable, 'created_at' | 'id'>): ListPosition {
  return { createdAt: Number(row.created_at), id: row.id };
}

/** How many row numbers the first piece of a search covers in the index, and how many rows a piece reads. */
const FIRST_NUMBERS = 131_072;
const PIECE_ROWS = 500;
/** Each piece has a cost of its own: after one that took less time than this, in milliseconds, the next covers more. */
const QUICK_MS = 2.5;
const GROWTH = 4;
/** The length of what the index has, and the most that is looked for in it, in code points. */
const [TRIGRAM, MAX_PHRASE] = [3, 64];
/** What the index has of a text with a NUL: see `indexedText`. */
const TEXT_WITH_NUL = '"\u0001\u0001\u0001"';

/**
 * What to ask the index of an SQLite store for, so that it finds at least all keys that a search has to; undefined for
 * one that is too short.
 */
export function buildPhrase(search: string): string | undefined {
  const characters = Array.from(searchTextOf({ name: search, description: null }));
  if (characters.length < TRIGRAM || search.includes('\0')) return undefined;
  const quoted = characters.slice(0, MAX_PHRASE).join('').replaceAll('"', '""');
  return `"${quoted}" OR ${TEXT_WITH_NUL}`;
}

/** The keys that `read` finds among those that the index of an SQLite store has for a phrase, in their order. */
export async function* searchIndex(
  connection: Connection,
  query: KeySlice,
  phrase: string,
  read: ReadSlice,
): Search<ApiKeyTable[]> {
  let found: ApiKeyTable[] = [];
  const { first, last } = await connection.run(rowNumbers);
  for (let after = first - 1, width = FIRST_NUMBERS; after < last;) {
    const piece = { after, upTo: Math.min(after + width, last) };
    const began = performance.now();
    const numbers = await connection.run((db) => findRows(db, phrase, piece));
    width = performance.now() - began < QUICK_MS ? width * GROWTH : FIRST_NUMBERS;
    after = numbers.length < PIECE_ROWS ? piece.upTo : numbers.at(-1)!;
    if (numbers.length > 0) {
      const slice = { ...query, upTo: found.length < query.limit ? undefined : positionOf(found.at(-1)!) };
      const rows = await connection.run((db) => read(db, slice, () => isAmong(numbers)));
      found = [...found, ...rows].toSorted(inOrder).slice(0, query.limit);
    }
    yield;
  }
  return found;
}

/** Whether the index belongs to the rows: SQLite doesn't promise that a VACUUM numbers them as before. */
export async function isIndexed(db: Kysely<Tables>): Promise<boolean> {
  const { rows } = await sql<{ isIndexed: number }>`select
    (select max(rowid) from api_keys) is (select max(id) from api_keys_search_docsize) as "isIndexed"`.execute(db);
  return rows[0]!.isIndexed === 1;
}

/** See `KeyRepository.hasSearchIndex`. */
export async function hasSearchIndex(connection: Connection): Promise<boolean> {
  if (connection.dialect === 'sqlite') return true;
  const { rows } = await connection.run((db) =>
    sql`select 1 from pg_index join pg_class on pg_class.oid = indexrelid join pg_am on pg_am.oid = relam
      where indrelid = 'api_keys'::regclass and amname = 'gin' and indisvalid`.execute(db),
  );
  return rows.length > 0;
}

async function rowNumbers(db: Kysely<Tables>): Promise<{ first: number; last: number }> {
  const { rows } = await sql<{ first: number; last: number }>`select
    coalesce((select min(rowid) from api_keys), 0) as first,
    coalesce((select max(rowid) from api_keys), -1) as last`.execute(db);
  return rows[0]!;
}

/** The numbers of the rows that the index has for a phrase, in their order. */
async function findRows(
  db: Kysely<Tables>,
  phrase: string,
  { after, upTo }: { after: number; upTo: number },
): Promise<number[]> {
  // The driver passes all numbers as floating-point ones, for which the index would be read from its start to its end.
  const { rows } = await sql<{ number: number }>`select rowid as number from api_keys_search
    where api_keys_search match ${phrase} and rowid > cast(${after} as integer) and rowid <= cast(${upTo} as integer)
    order by rowid limit ${PIECE_ROWS}`.execute(db);
  return rows.map(({ number }) => number);
}

function isAmong(numbers: readonly number[]) {
  return sql<SqlBool>`api_keys.rowid in (select value from json_each(${JSON.stringify(numbers)}))`;
}

function inOrder(one: ApiKeyTable, other: ApiKeyTable): number {
  if (one.created_at !== other.created_at) return one.created_at - other.created_at;
  return Buffer.compare(Buffer.from(one.id), Buffer.from(other.id));
}
