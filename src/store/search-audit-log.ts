import { type Kysely, sql } from 'kysely';
import type { AuditEntry, AuditQuery } from '../keys/audit/audit-entry.ts';
import { auditReaderOf, findAuditEntries } from './audit-log.ts';
import type { Connection } from './connection.ts';
import type { Search } from './searches.ts';
import type { Tables } from './tables.ts';

/** A search through all entries reads so many at a time; one through an index, so many of those there. */
const SLICE_ENTRIES = 5000;
const PIECE_ENTRIES = 500;

/** The filters that have an index, and the columns that may have their value. */
const INDEXED = {
  apiKey: ['key_id', 'key_name'],
  actor: ['actor_id', 'actor_name'],
  action: ['action'],
} as const satisfies Partial<Record<keyof AuditQuery, readonly string[]>>;
const INDEXED_FILTERS = Object.keys(INDEXED) as (keyof typeof INDEXED)[];

/**
 * The ways to search for the entries that match a query, which all find the same: through the entries in the query's
 * order, which is fast where many match, and through the index of each filter, which is fast where few do.
 */
export function auditSearchesFor(connection: Connection, query: AuditQuery): Search<AuditEntry[]>[] {
  const isTimed = (query.since ?? query.until) !== undefined;
  return [
    searchSlices(connection, query),
    ...INDEXED_FILTERS.filter((filter) => query[filter] !== undefined).map((filter) =>
      searchFilter(connection, query, filter),
    ),
    ...(isTimed ? [searchTimes(connection, query)] : []),
  ];
}

async function* searchSlices(connection: Connection, query: AuditQuery): Search<AuditEntry[]> {
  const reader = auditReaderOf((work) => connection.run(work), undefined);
  const [head, start] = [await reader.head(), await reader.start()];
  let [after, before] = [
    Math.max(query.after ?? 0, start?.number ?? 0),
    Math.min(query.before ?? Infinity, (head?.number ?? 0) + 1),
  ];
  const found: AuditEntry[] = [];
  while (found.length < query.limit && after < before - 1) {
    const slice =
      query.order === 'newest'
        ? { after: Math.max(after, before - 1 - SLICE_ENTRIES), before }
        : { after, before: Math.min(before, after + 1 + SLICE_ENTRIES) };
    found.push(...(await reader.find({ ...query, ...slice, limit: query.limit - found.length })));
    if (query.order === 'newest') before = slice.after + 1;
    else after = slice.before - 1;
    yield;
  }
  return found;
}

/** In the query's order, as the index has it. */
async function* searchFilter(
  connection: Connection,
  query: AuditQuery,
  filter: keyof typeof INDEXED,
): Search<AuditEntry[]> {
  const found: AuditEntry[] = [];
  let { after = 0, before = Number.MAX_SAFE_INTEGER } = query;
  for (;;) {
    const rest = { ...query, after, before, limit: query.limit - found.length };
    const numbers = await connection.run((db) => findNumbers(db, rest, filter));
    if (numbers.length > 0) found.push(...(await connection.run((db) => findAuditEntries(db, rest, numbers))));
    if (numbers.length < PIECE_ENTRIES || found.length >= query.limit) return found;
    if (query.order === 'newest') before = numbers.at(-1)!;
    else after = numbers.at(-1)!;
    yield;
  }
}

/** The numbers of the next entries that match a filter, in the order of a query. */
async function findNumbers(
  db: Kysely<Tables>,
  { order, after, before, ...query }: AuditQuery,
  filter: keyof typeof INDEXED,
): Promise<number[]> {
  const inOrder = sql`order by number ${sql.raw(order === 'newest' ? 'desc' : 'asc')} limit ${PIECE_ENTRIES}`;
  // Each column by itself: its index is in the order of the numbers.
  const selections = INDEXED[filter].map(
    (column) => sql`select * from (select number from audit_log
      where ${sql.ref(column)} = ${query[filter]} and number > ${after} and number < ${before} ${inOrder})`,
  );
  const { rows } = await sql<{ number: number }>`${sql.join(selections, sql` union `)} ${inOrder}`.execute(db);
  return rows.map(({ number }) => number);
}

/** In the order of times, which may differ from that of the numbers: clocks are set back. */
async function* searchTimes(connection: Connection, query: AuditQuery): Search<AuditEntry[]> {
  let found: AuditEntry[] = [];
  const sign = query.order === 'newest' ? -1 : 1;
  let last = { at: query.since ?? 0, number: 0 };
  for (;;) {
    const rows = await connection.run((db) => findTimes(db, last, query.until ?? Number.MAX_SAFE_INTEGER));
    const worst = found.length < query.limit ? undefined : found.at(-1)!.number;
    const numbers = rows
      .map(({ number }) => number)
      .filter((number) => worst === undefined || sign * (number - worst) < 0);
    if (numbers.length > 0) {
      const entries = await connection.run((db) => findAuditEntries(db, query, numbers));
      found = [...found, ...entries].toSorted((one, other) => sign * (one.number - other.number)).slice(0, query.limit);
    }
    if (rows.length < PIECE_ENTRIES) return found;
    last = rows.at(-1)!;
    yield;
  }
}

async function findTimes(
  db: Kysely<Tables>,
  last: { at: number; number: number },
  until: number,
): Promise<{ at: number; number: number }[]> {
  return db
    .selectFrom('audit_log')
    .select(['at', 'number'])
    .where((row) => row(row.refTuple('at', 'number'), '>', row.tuple(last.at, last.number)))
    .where('at', '<', until)
    .orderBy('at')
    .orderBy('number')
    .limit(PIECE_ENTRIES)
    .execute();
}
