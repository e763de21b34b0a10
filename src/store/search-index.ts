import { type Kysely, type SqlBool, sql } from 'kysely';
import type { Connection } from './connection.ts';
import { searchTextOf } from './rows.ts';
import { type KeySlice, positionOf, type ReadSlice } from './search-slices.ts';
import type { Search } from './searches.ts';
import type { ApiKeyTable, Tables } from './tables.ts';

/** How many row numbers the first piece of a search covers in the index, and how many rows a piece reads. */
const FIRST_NUMBERS = 131_072;
const PIECE_ROWS = 500;
/** Each piece has a cost of its own: after one that took less time than this, in milliseconds, the next covers more. */
const QUICK_MS = 2.5;
const GROWTH = 4;
/** The length of what the index has, and the most that is looked for in it, in code points. */
const [TRIGRAM, MAX_PHRASE] = [3, 64];
/** What the index has of a text with a NUL: see `addSearchIndexes`. */
const TEXT_WITH_NUL = '"\u0001\u0001\u0001"';

/**
 * What to ask the index of an SQLite store for, so that it finds at least all keys that a search has to; undefined for
 * one that is too short.
 */
export function phraseOf(search: string): string | undefined {
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
