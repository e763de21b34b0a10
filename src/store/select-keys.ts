import {
  type Expression,
  type ExpressionBuilder,
  type Kysely,
  type RawBuilder,
  type SelectQueryBuilder,
  sql,
  type SqlBool,
} from 'kysely';
import { chainOf, chainStatus, type Link, MAX_CHAIN_LENGTH } from '../keys/authorization/index.ts';
import { yielding, yieldToEventLoop, sortYielding } from '../keys/basics/index.ts';
import type { ApiKey, RotatedSecret, Status } from '../keys/key/index.ts';
import type { FoundBySecret, KeyFilter, ListPosition } from '../keys/repository/index.ts';
import type { Connection, DialectName, KeyRowBySecret } from './connection.ts';
import { apiKeyOf, chunksOf, toNumber, searchTextOf } from './rows.ts';
import type { ApiKeyTable, KeyRow, Tables } from './tables.ts';

type KeyColumns = ExpressionBuilder<Tables, 'api_keys'>;
/** Whether a key is selected. */
export type Condition = (row: KeyColumns) => Expression<SqlBool>;

/** A filter, and those parts of what it searches for that PostgreSQL's index is asked for: see `rarePartsOf`. */
interface FilterInParts extends KeyFilter {
  rareParts: readonly string[];
}

/** Keys between two positions, by time of creation, then id. */
export function selectKeys(
  db: Kysely<Tables>,
  { after, upTo }: { after?: ListPosition | undefined; upTo?: ListPosition | undefined },
  condition: Condition,
) {
  return db
    .selectFrom('api_keys')
    .where(condition)
    .$if(after !== undefined, (select) =>
      select.where((row) => row(row.refTuple('created_at', 'id'), '>', row.tuple(after!.createdAt, after!.id))),
    )
    .$if(upTo !== undefined, (select) =>
      select.where((row) => row(row.refTuple('created_at', 'id'), '<=', row.tuple(upTo!.createdAt, upTo!.id))),
    )
    .orderBy('created_at')
    .orderBy('id');
}

/** The condition of a filter. Of a status it is what a key's own row says: see `selectIdsOfStatus`. */
export function matching(
  row: KeyColumns,
  { search, rareParts, ownedBy, roles, status }: FilterInParts,
  dialect: DialectName,
) {
  const has = (column: 'roles' | 'search_text', text: string) => contains(dialect, column, text);
  const conditions: Expression<SqlBool>[] = [];
  if (search !== undefined) {
    const text = searchTextOf({ name: search, description: null });
    conditions.push(rareParts.length > 0 ? isFoundByParts(text, rareParts) : has('search_text', text));
  }
  if (roles !== undefined) conditions.push(row.or(roles.map((role) => has('roles', `"${role}"`))));
  if (status !== undefined) conditions.push(couldHaveStatus(status));
  if (ownedBy !== undefined) conditions.push(row.or([row('id', '=', ownedBy), row('created_by', '=', ownedBy)]));
  return row.and(conditions);
}

/** Whether a column contains a text literally. */
function contains(dialect: DialectName, column: string, text: string): Expression<SqlBool> {
  // SQLite's LIKE stops at a NUL and ignores case. PostgreSQL estimates the selectivity of a LIKE pattern, but not of a
  // position, for which it would scan all keys in order.
  if (dialect === 'sqlite') return sql<SqlBool>`instr(${sql.ref(column)}, ${text}) > 0`;
  return sql<SqlBool>`${sql.ref(column)} like ${`%${text.replaceAll(/[\\%_]/g, '\\$&')}%`}`;
}

/**
 * Whether PostgreSQL finds a text in a key that it finds by parts of it. Its index looks for one part after another,
 * and for no others. Planned by itself: where the sample that PostgreSQL has of a table has one key with the text, it
 * would read all keys in their order until there are enough.
 */
function isFoundByParts(text: string, parts: readonly string[]): Expression<SqlBool> {
  const hasParts = parts.map((part) => contains('postgres', 'search_text', part));
  const hasText = sql`strpos(search_text, ${text}) > 0`;
  const found = sql`select ctid from api_keys where ${sql.join([...hasParts, hasText], sql` and `)}`;
  return sql<SqlBool>`api_keys.ctid = any(array(${found}))`;
}

/**
 * Whether a key has a status, or may have it by its ancestors: they only make an active key disabled or expired, and a
 * disabled one expired.
 */
function couldHaveStatus({ is, now }: { is: Status; now: number }): RawBuilder<SqlBool> {
  const isExpired = sql`coalesce(expires_at <= ${now}, false)`;
  const own: Record<Status, RawBuilder<unknown>> = {
    ACTIVE: sql`not ${isExpired} and disabled_at is null`,
    DISABLED: sql`not ${isExpired} and (disabled_at is not null or created_by is not null)`,
    EXPIRED: sql`(${isExpired} or created_by is not null)`,
  };
  return sql<SqlBool>`(${own[is]})`;
}

/** A status, at a time in milliseconds since 1970. */
interface StatusAt {
  is: Status;
  now: number;
}

/** What the status of a key depends on. */
export const STATUS_COLUMNS = [
  'api_keys.id',
  'api_keys.created_by',
  'api_keys.expires_at',
  'api_keys.disabled_at',
] as const;

/** The ids of the keys of a selection that have a status, with their ancestors counted (see `chainStatus`). */
export async function selectIdsOfStatus(
  db: Kysely<Tables>,
  selection: SelectQueryBuilder<Tables, 'api_keys', object>,
  { is, now }: StatusAt,
): Promise<string[]> {
  const links = (await selection.select(STATUS_COLUMNS).execute()).map(linkOf);
  const known = new Map(links.map((link) => [link.id, link]));
  const unknown = new Set(
    links.flatMap(({ createdBy }) => (createdBy === null || known.has(createdBy) ? [] : createdBy)),
  );
  for (const chunk of chunksOf([...unknown])) {
    const ancestors = await selectAncestors(db, chunk).select(STATUS_COLUMNS).execute();
    for (const ancestor of ancestors) known.set(ancestor.id, linkOf(ancestor));
  }
  return links.filter((link) => chainStatus(chainOf(link, known), now) === is).map(({ id }) => id);
}

/** The link of a row in its chain. */
export function linkOf(row: Pick<ApiKeyTable, 'id' | 'created_by' | 'expires_at' | 'disabled_at'>): Link {
  return {
    id: row.id,
    createdBy: row.created_by,
    expiresAt: toNumber(row.expires_at),
    disabledAt: toNumber(row.disabled_at),
  };
}

/** Selects from the keys with these ids, the keys that created them, and so on: `MAX_CHAIN_LENGTH` generations. */
export function selectAncestors(db: Kysely<Tables>, ids: readonly string[]) {
  return db
    .withRecursive('ancestors(id, created_by, generation)', (query) =>
      query
        .selectFrom('api_keys')
        .where('id', 'in', ids)
        .select(['id', 'created_by', sql<number>`1`.as('generation')])
        .union(
          query
            .selectFrom('ancestors')
            .innerJoin('api_keys as creator', 'creator.id', 'ancestors.created_by')
            .where('ancestors.generation', '<', MAX_CHAIN_LENGTH)
            .select(['creator.id', 'creator.created_by', sql<number>`ancestors.generation + 1`.as('generation')]),
        ),
    )
    .selectFrom('api_keys')
    .where('id', 'in', (query) => query.selectFrom('ancestors').select('ancestors.id'));
}

/** The ids of keys, of those that they created, and so on: each once. Only an index is read: nobody waits long. */
export async function findFamily(db: Kysely<Tables>, ids: readonly string[]): Promise<string[]> {
  const family = new Set(ids);
  for (let generation = [...family]; generation.length > 0;) {
    const created: string[] = [];
    for (const chunk of chunksOf(generation)) {
      const rows = await db.selectFrom('api_keys').select('id').where('created_by', 'in', chunk).execute();
      for await (const { id } of yielding(rows))
        if (!family.has(id)) {
          family.add(id);
          created.push(id);
        }
    }
    generation = created;
  }
  return [...family];
}

/** See `KeyFinder.countLive`. */
export async function countLive(db: Kysely<Tables>, creator: string, now: number): Promise<number> {
  const { count } = await db
    .selectFrom('api_keys')
    .select((row) => row.fn.countAll().as('count'))
    .where('created_by', '=', creator)
    .where('disabled_at', 'is', null)
    .where((row) => row.or([row('expires_at', 'is', null), row('expires_at', '>', now)]))
    .executeTakeFirstOrThrow();
  return Number(count);
}

/**
 * Sorts keys by age, each after the key that created it. Sorted by the database, the query would scan all keys in that
 * order.
 */
export async function creatorsFirst<Key extends ApiKey>(keys: ReadonlyMap<string, Key>): Promise<Key[]> {
  const byAge = await sortYielding(
    [...keys.values()],
    (one, other) => one.createdAt - other.createdAt || (one.id < other.id ? -1 : 1),
  );
  const created = new Map<string | null, Key[]>();
  for await (const key of yielding(byAge)) {
    const creator = key.createdBy !== null && keys.has(key.createdBy) ? key.createdBy : null;
    const siblings = created.get(creator);
    if (siblings) siblings.push(key);
    else created.set(creator, [key]);
  }
  const sorted = [...(created.get(null) ?? [])];
  for (const { id } of sorted) for (const child of created.get(id) ?? []) sorted.push(child);
  return sorted;
}

/** The row of the key that had a secret with this digest once, with the public id of that secret. */
function findByRotatedDigest(db: Kysely<Tables>, digest: string) {
  return db
    .selectFrom('rotated_secrets')
    .innerJoin('api_keys', 'api_keys.id', 'rotated_secrets.key_id')
    .selectAll('api_keys')
    .select('rotated_secrets.public_id as rotated_public_id')
    .where('rotated_secrets.digest', '=', digest)
    .executeTakeFirst();
}

/** Remembers secrets that keys had, inside a write transaction. */
export async function addRotatedSecrets(db: Kysely<Tables>, secrets: readonly RotatedSecret[]): Promise<void> {
  for (const { digest, publicId, keyId, rotatedAt } of secrets) {
    const columns = { public_id: publicId, key_id: keyId, rotated_at: rotatedAt };
    await db
      .insertInto('rotated_secrets')
      .values({ digest, ...columns })
      .onConflict((conflict) => conflict.column('digest').doUpdateSet(columns))
      .execute();
  }
}

/** See `AuditWriter.forgetRotatedSecrets`. */
export async function forgetRotatedSecrets(db: Kysely<Tables>, before: number, limit: number): Promise<number> {
  const oldest = db.selectFrom('rotated_secrets').select('digest').where('rotated_at', '<', before).limit(limit);
  const { numDeletedRows } = await db.deleteFrom('rotated_secrets').where('digest', 'in', oldest).executeTakeFirst();
  return Number(numDeletedRows);
}

/** See `KeyRepository.findByDigest`. */
export function findByDigest(
  connection: Connection,
  digest: string,
): FoundBySecret | undefined | Promise<FoundBySecret | undefined> {
  const found = connection.findByDigest?.(digest);
  if (found) return found.row && foundBy(digest, found.row, found.ancestors);
  return connection.run(async (db) => {
    const [live] = await selectByDigests(db, [digest]);
    const row = live ?? (await findByRotatedDigest(db, digest));
    return row && foundBy(digest, row, await selectCreators(db, row));
  });
}

/** The rows of the keys that have a secret with one of these digests. */
export function selectByDigests(db: Kysely<Tables>, digests: readonly string[]): Promise<ApiKeyTable[]> {
  return db
    .selectFrom('api_keys')
    .selectAll()
    .where((row) => row.or([row('digest', 'in', digests), row('previous_digest', 'in', digests)]))
    .execute();
}

async function selectCreators(db: Kysely<Tables>, { created_by }: KeyRow): Promise<KeyRow[]> {
  return created_by === null ? [] : selectAncestors(db, [created_by]).selectAll('api_keys').execute();
}

function foundBy(digest: string, row: KeyRowBySecret, ancestors: readonly KeyRow[]): FoundBySecret {
  const found = { key: apiKeyOf(row), ancestors: byId(ancestors) };
  if (row.rotated_public_id !== undefined) return { ...found, secret: 'rotated', publicId: row.rotated_public_id };
  return row.digest === digest
    ? { ...found, secret: 'current', publicId: found.key.publicId }
    : // A damaged row may be found by a digest that it does not have.
      { ...found, secret: 'previous', publicId: found.key.rotation?.previousPublicId ?? found.key.publicId };
}

function byId(rows: readonly KeyRow[]): Map<string, ApiKey> {
  return new Map(rows.map((row) => [row.id, apiKeyOf(row)]));
}

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
interface KeySlice {
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
