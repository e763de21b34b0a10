import { type Expression, type Kysely, type RawBuilder, sql, type SqlBool } from 'kysely';
import { chainOf, chainStatus, type Link } from '../keys/authorization/index.ts';
import { yieldToEventLoop } from '../keys/basics/index.ts';
import type { Status } from '../keys/key/index.ts';
import type { KeyCounts, KeyFilter, ListPosition, ListQuery } from '../keys/repository/index.ts';
import type { Connection, DialectName } from './connection.ts';
import { indexedSkeleton } from './migrations.ts';
import { amongIds, BEFORE_IDS, chunksOf, idsOf, isId, labelOfOwner, labelOfTag, searchTextOf } from './rows.ts';
import { addAncestors, type Condition, type KeyColumns, selectKeys } from './select-keys.ts';
import type { ApiKeyTable, Tables } from './tables.ts';

/** The keys that match a query, by time of creation, then id. */
export async function findKeys(connection: Connection, query: ListQuery): Promise<ApiKeyTable[]> {
  if (isFiltered(query)) return firstFound(await searchesFor(connection, query));
  return connection.run((db) =>
    selectKeys(db, query, (row) => row.lit(true))
      .selectAll()
      .limit(query.limit)
      .execute(),
  );
}

/** Whether something narrows a filter. */
export function isFiltered(filter: KeyFilter): boolean {
  const { search, roles, status, ownedBy, owner, tags, createdBy, expires, unusedSince, neverUsed } = filter;
  const given = [search, roles, status, ownedBy, owner, tags, createdBy, expires, unusedSince, neverUsed];
  return given.some((value) => value !== undefined);
}

/** Whether a filter asks for the child keys of what is no id. */
export function isOfNobody({ dialect }: Connection, { createdBy, ownedBy }: KeyFilter): boolean {
  return [createdBy, ownedBy].some((id) => id != null && !isId(dialect, id));
}

/**
 * The ways to search for the keys that match a query, which all find the same: through the keys in their order, which
 * is fast where many match, and through indexes, which are fast where few do.
 */
export async function searchesFor(connection: Connection, query: ListQuery): Promise<Search<ApiKeyTable[]>[]> {
  const { search, ownedBy, owner, tags = [], createdBy, expires } = query;
  const owners = owner === undefined ? undefined : await findOwners(connection, owner);
  const reader = new KeyReader(connection, query, owners);
  if (owners?.isNobody || isOfNobody(connection, query)) return [inOnePiece(async () => [])];
  const ways = [searchSlices(connection, query, reader)];
  if (ownedBy !== undefined) ways.push(searchChildren(connection, query, { creator: ownedBy, isOne: true }, reader));
  if (createdBy != null) ways.push(searchChildren(connection, query, { creator: createdBy, isOne: false }, reader));
  if (expires) ways.push(searchEnding(connection, query, expires, reader));
  // What the index of the order has is looked through in less time than the keys of a tag, if these are many.
  const share = query.status || query.roles ? LABELLED_SHARE : INDEX_SHARE;
  for (const tag of tags)
    ways.push(Object.assign(searchLabelled(connection, query, labelOfTag(tag), reader), { share }));
  if (owners) ways.push(searchFamily(connection, query, owners, reader));
  if (isMerged(connection, query))
    ways.push(Object.assign(searchUnused(connection, query, reader.withoutUse()), { share: MERGE_SHARE }));
  if (search === undefined) return ways;
  if (connection.dialect === 'sqlite') {
    const phrase = buildPhrase(search);
    if (phrase !== undefined && (await connection.run(isIndexed)))
      ways.push(searchIndex(connection, query, phrase, reader));
  } else {
    const parts = await rarePartsOf(connection, search);
    const text = searchTextOf({ name: search });
    if (parts.length > 0) ways.push(inOnePiece(() => reader.read(query, () => isFoundByParts(text, parts))));
  }
  return ways;
}

/** A part of the keys, in their order, and how many of it are needed. */
interface KeySlice {
  after?: ListPosition | undefined;
  upTo?: ListPosition | undefined;
  limit: number;
  /** Whether the last ones are read, the last one first. */
  descending?: boolean | undefined;
}

/** Reads the keys that match a filter, in their order. */
export class KeyReader {
  readonly #connection: Connection;
  readonly #filter: KeyFilter;
  readonly #owners: Owners | undefined;
  readonly #creators: Creators | undefined;

  /** @param owners to whom all that are read answer */
  constructor(connection: Connection, filter: KeyFilter, owners?: Owners) {
    this.#connection = connection;
    this.#filter = filter;
    this.#owners = owners;
    if (filter.status || owners) this.#creators = new Creators(connection, filter.status?.now ?? 0, owners);
  }

  /** One that does not ask when keys were used. */
  withoutUse(): KeyReader {
    const filter = { ...this.#filter, unusedSince: undefined, neverUsed: undefined };
    return new KeyReader(this.#connection, filter, this.#owners);
  }

  /** Those of a slice, if they fulfil one more condition. */
  async read(slice: KeySlice, among?: Condition): Promise<ApiKeyTable[]> {
    const positions = await this.positions(slice, among);
    return (await readRows(this.#connection, idsOf(positions))).toSorted(inOrder);
  }

  /** Where those of a slice stand, if they fulfil one more condition, in the order of the slice. */
  async positions(keys: KeySlice, among?: Condition): Promise<ListPosition[]> {
    const { unusedSince } = this.#filter;
    const slice = unusedSince === undefined ? keys : createdBefore(unusedSince, keys);
    if (!slice) return [];
    const text = this.#filter.search && searchTextOf({ name: this.#filter.search });
    const found = new Map<string, ListPosition>();
    for (const hasText of textConditions(this.#connection.dialect, text))
      for (const position of await this.#find(slice, (row) => row.and([hasText, ...(among ? [among(row)] : [])])))
        found.set(position.id, position);
    const sign = slice.descending ? -1 : 1;
    return [...found.values()].toSorted((one, other) => sign * compare(one, other)).slice(0, slice.limit);
  }

  /** About how many keys are looked through at a time: fewer where each has to be looked up in another table. */
  get sliceKeys(): number {
    const { owner, tags, unusedSince, neverUsed } = this.#filter;
    return [owner, tags, unusedSince, neverUsed].some((value) => value !== undefined) ? LOOKED_UP_KEYS : SLICE_KEYS;
  }

  /** Whether nothing has to be known of those that created the keys of a slice before it is read. */
  async isReady(): Promise<boolean> {
    return (await this.#creators?.learnAll()) ?? true;
  }

  /** By the index of their order alone, where it has all that is asked for. */
  async #find(slice: KeySlice, among: Condition): Promise<ListPosition[]> {
    const { dialect } = this.#connection;
    const { roles, ownedBy, status, createdBy, expires, unusedSince, neverUsed, tags = [] } = this.#filter;
    // In the order in which they are tested: what takes more time comes later.
    const conditions: Condition[] = [
      // No index of ids or creators is in this order.
      ...(ownedBy === undefined
        ? []
        : [() => sql<SqlBool>`case when id = ${ownedBy} then true else created_by = ${ownedBy} end`]),
      among,
      ...(createdBy === undefined ? [] : [isCreatedBy(createdBy)]),
      ...(expires
        ? [
            (row: KeyColumns) =>
              row.and([row('expires_at', '>', expires.after), row('expires_at', '<=', expires.until)]),
          ]
        : []),
      ...(roles
        ? [
            () =>
              sql<SqlBool>`(${sql.join(
                roles.map((role) => has(dialect, 'roles', `"${role}"`)),
                sql` or `,
              )})`,
          ]
        : []),
      ...tags.map((tag) => () => hasLabel(labelOfTag(tag))),
      ...(neverUsed ? [() => wasNotUsed(sql`last_used_at is not null`)] : []),
      ...(unusedSince === undefined ? [] : [() => wasNotUsed(sql`last_used_at >= ${unusedSince}`)]),
    ];
    const select = (db: Kysely<Tables>) =>
      selectKeys(db, slice, (row) => row.and(conditions.map((condition) => condition(row))));
    await this.#creators?.learnOf(select);
    if (status) {
      const statusCondition = hasStatus(dialect, status, this.#creators!);
      conditions.unshift(() => statusCondition);
    }
    if (this.#owners) {
      const isWithin = answersTo(dialect, this.#owners, this.#creators!);
      conditions.unshift(() => isWithin);
    }
    const rows = await this.#connection.run((db) =>
      select(db).select(['created_at', 'id']).limit(slice.limit).execute(),
    );
    return rows.map(positionOf);
  }
}

/** What of a slice was created before a time; undefined for nothing. */
function createdBefore(time: number, slice: KeySlice): KeySlice | undefined {
  const end = { createdAt: time, id: BEFORE_IDS };
  if (slice.after && compare(slice.after, end) >= 0) return undefined;
  return slice.upTo && compare(slice.upTo, end) <= 0 ? slice : { ...slice, upTo: end };
}

/** The rows of the keys with these ids, in any order. */
export async function readRows(connection: Connection, ids: readonly string[]): Promise<ApiKeyTable[]> {
  const found = [];
  for (const chunk of chunksOf(ids))
    found.push(
      ...(await connection.run((db) => db.selectFrom('api_keys').selectAll().where('id', 'in', chunk).execute())),
    );
  return found;
}

type SearchedColumn = 'roles' | 'short_text' | 'long_text';

/** The text in which a key is searched. */
const SEARCH_TEXT = sql<string>`coalesce(short_text, long_text)`;

/** Whether a column contains a text literally. Neither database takes an index for it, or guesses how many do. */
function has(dialect: DialectName, column: SearchedColumn | RawBuilder<unknown>, text: string): RawBuilder<SqlBool> {
  // SQLite's LIKE stops at a NUL and ignores case.
  const position = sql.raw(dialect === 'sqlite' ? 'instr' : 'strpos');
  return sql<SqlBool>`${position}(${typeof column === 'string' ? sql.ref(column) : column}, ${text}) > 0`;
}

/**
 * The conditions of which keys with a text fulfil one, each for a statement: an index is read alone only if that names
 * nothing else, and the keys with a long text are in another one.
 */
function textConditions(dialect: DialectName, text: string | undefined): readonly RawBuilder<SqlBool>[] {
  if (text === undefined) return [sql<SqlBool>`true`];
  return [has(dialect, 'short_text', text), sql<SqlBool>`long_text is not null and ${has(dialect, 'long_text', text)}`];
}

/** Whether a key has a status, by its own fields and by what is known of the key that created it. */
function hasStatus(
  dialect: DialectName,
  { is, now }: { is: Status; now: number },
  creators: Creators,
): RawBuilder<SqlBool> {
  const given = (ids: readonly string[]) => amongIds(dialect, ids);
  // A condition and its opposite, in which null is neither: what makes it another value costs as much as all the rest.
  const isEnded = (by: RawBuilder<unknown>, ids: readonly string[]) =>
    ids.length === 0 ? sql<SqlBool>`(${by})` : sql<SqlBool>`(${by} or created_by ${given(ids)})`;
  const isNotEnded = (by: RawBuilder<unknown>, ids: readonly string[]) =>
    ids.length === 0 ? by : sql`${by} and (created_by is null or not created_by ${given(ids)})`;
  const [expired, disabled] = [creators.withStatus('EXPIRED'), creators.withStatus('DISABLED')];
  const isNotExpired = isNotEnded(sql`(expires_at is null or expires_at > ${now})`, expired);
  const conditions: Record<Status, RawBuilder<SqlBool>> = {
    ACTIVE: sql<SqlBool>`(${isNotEnded(sql`disabled_at is null`, disabled)} and ${isNotExpired})`,
    DISABLED: sql<SqlBool>`(${isEnded(sql`disabled_at is not null`, disabled)} and ${isNotExpired})`,
    EXPIRED: isEnded(sql`expires_at <= ${now}`, expired),
  };
  return conditions[is];
}

/** Whether a key is one of some, has their owner, or was created by one of them, and so on. */
function answersTo(dialect: DialectName, { ids, label }: Owners, creators: Creators): RawBuilder<SqlBool> {
  const [own, created] = [[...ids], creators.within()].map((found) => amongIds(dialect, found));
  return sql<SqlBool>`case when id ${own} then true when created_by is not null and created_by ${created} then true
    else ${hasLabel(label)} end`;
}

/** Whether a key has a label. */
function hasLabel(label: string): RawBuilder<SqlBool> {
  return sql<SqlBool>`exists (select 1 from key_labels where label = ${label}
    and key_labels.created_at = api_keys.created_at and key_id = api_keys.id)`;
}

function isCreatedBy(creator: string | null): Condition {
  return (row) => (creator === null ? row('created_by', 'is', null) : row('created_by', '=', creator));
}

/** Whether a key has no use that fulfils a condition. */
export function wasNotUsed(use: RawBuilder<unknown>): RawBuilder<SqlBool> {
  return sql<SqlBool>`not exists (select 1 from key_usage where key_id = api_keys.id and ${use})`;
}

/** How many keys that create others are looked at before it is known whose keys are asked for. */
const MAX_CREATORS = 1000;

/** The keys that created others, and what the status of those is because of them. */
class Creators {
  readonly #connection: Connection;
  readonly #now: number;
  readonly #links = new Map<string, Link>();
  readonly #statuses = new Map<string, Status>();
  readonly #owners: Owners | undefined;
  /** Those of the links that are the owners themselves, or have their label. */
  readonly #owning = new Set<string>();
  #areAllKnown: boolean | undefined;

  constructor(connection: Connection, now: number, owners?: Owners) {
    this.#connection = connection;
    this.#now = now;
    this.#owners = owners;
  }

  /** Those of which it is known that others have a status by them. */
  withStatus(status: Status): string[] {
    return [...this.#statuses].flatMap(([id, known]) => (known === status ? id : []));
  }

  /** Those of which it is known that they are one of the owners, or were created by one of them, and so on. */
  within(): string[] {
    return [...this.#statuses.keys()].filter((id) =>
      chainOf(childOf(id), this.#links).keys.some((link) => this.#owning.has(link.id)),
    );
  }

  /** Learns of all if they are few. @returns whether they are */
  async learnAll(): Promise<boolean> {
    if (this.#areAllKnown !== undefined) return this.#areAllKnown;
    const { rows } = await this.#connection.run((db) =>
      sql<{ id: string }>`with recursive creators(id) as (
          select ${leastCreator(sql`is not null`)}
          union all
          select ${leastCreator(sql`> creators.id`)} from creators where creators.id is not null
        ) select id from creators where id is not null limit ${sql.lit(MAX_CREATORS + 1)}`.execute(db),
    );
    this.#areAllKnown = rows.length <= MAX_CREATORS;
    if (this.#areAllKnown) await this.#learn(rows.map(({ id }) => id));
    return this.#areAllKnown;
  }

  /** Learns of those that created the keys of a selection. */
  async learnOf(select: (db: Kysely<Tables>) => ReturnType<typeof selectKeys>): Promise<void> {
    if (this.#areAllKnown) return;
    // One statement knows no more of them than it needs.
    this.#statuses.clear();
    const rows = await this.#connection.run((db) =>
      db
        // In their order: where many keys have the same time, PostgreSQL would read all. In that of creators, SQLite.
        .selectFrom(select(db).select('created_by').as('keys'))
        .select(sql<string>`coalesce(cast(created_by as text), '')`.as('creator'))
        .distinct()
        .execute(),
    );
    await this.#learn(rows.flatMap(({ creator }) => (creator === '' ? [] : creator)));
  }

  async #learnOwning({ ids, label }: Owners): Promise<void> {
    for (const id of ids) this.#owning.add(id);
    for (const chunk of chunksOf([...this.#links.keys()])) {
      const rows = await this.#connection.run((db) =>
        db.selectFrom('key_labels').select('key_id').where('label', '=', label).where('key_id', 'in', chunk).execute(),
      );
      for (const { key_id: id } of rows) this.#owning.add(id);
    }
  }

  async #learn(ids: readonly string[]): Promise<void> {
    await addAncestors(this.#connection, ids, this.#links);
    if (this.#owners) await this.#learnOwning(this.#owners);
    for (const id of ids) {
      this.#statuses.set(id, chainStatus(chainOf(childOf(id), this.#links), this.#now));
    }
  }
}

/** The first of those that created keys, in the order of their ids: some versions of PostgreSQL have no least id. */
function leastCreator(which: RawBuilder<unknown>): RawBuilder<string | null> {
  return sql`(select created_by from api_keys where created_by ${which} order by created_by limit 1)`;
}

/** A key that another one has created, as far as that decides. */
function childOf(creator: string): Link {
  return { id: '', createdBy: creator, expiresAt: null, disabledAt: null };
}

/** With more keys, a search through an index is given up: each takes several times as long as one of those in order. */
const MAX_BY_INDEX = 3000;

/** How many keys are read first, by an index alone, and about how many at a time after that: see `sliceKeys`. */
const [FIRST_KEYS, SLICE_KEYS, LOOKED_UP_KEYS] = [1000, 32_000, 4000];

/** The keys that are found in a search through all, slice by slice until there are enough. */
async function* searchSlices(
  connection: Connection,
  { after, limit }: KeySlice,
  reader: KeyReader,
): Search<ApiKeyTable[]> {
  const found: ApiKeyTable[] = [];
  for await (const slice of slicesAfter(connection, after, () => reader.isReady(), reader.sliceKeys)) {
    found.push(...(await reader.read({ ...slice, limit: limit - found.length })));
    if (found.length >= limit) break;
    yield;
  }
  return found;
}

/**
 * All keys after a position, in slices: between those of SQLite, others have their turns. PostgreSQL keeps nobody
 * waiting.
 * @param isReady whether those after the first one can be read at once
 */
async function* slicesAfter(
  connection: Connection,
  after: ListPosition | undefined,
  isReady: () => Promise<boolean>,
  step = SLICE_KEYS,
): AsyncGenerator<Omit<KeySlice, 'limit'>> {
  // PostgreSQL would read all keys for the creators of a few: it guesses how many fulfil several conditions.
  const knowsFirst = connection.dialect === 'postgres' && (await isReady());
  const first = await connection.run((db) => lastOf(db, after, FIRST_KEYS));
  yield { after, upTo: first };
  if (!first) return;
  const areReady = knowsFirst || (await isReady());
  let start = first;
  const ends =
    connection.dialect === 'postgres' && areReady
      ? []
      : await connection.run((db) => samplePositions(db, connection.dialect, step));
  for (const upTo of ends) {
    if (compare(upTo, start) <= 0) continue;
    yield { after: start, upTo };
    start = upTo;
  }
  yield { after: start };
}

/**
 * All keys in slices of about so many, in their order or the other way round: PostgreSQL's in one if nothing has to be
 * known before.
 */
export async function slicesOf(
  connection: Connection,
  reader: KeyReader,
  descending: boolean,
): Promise<Omit<KeySlice, 'limit'>[]> {
  const isOne = (await reader.isReady()) && connection.dialect === 'postgres';
  const ends = isOne ? [] : await connection.run((db) => samplePositions(db, connection.dialect, reader.sliceKeys));
  const slices = [...ends, undefined].map((upTo, index) => ({ after: ends[index - 1], upTo, descending }));
  return descending ? slices.toReversed() : slices;
}

/** The position of the last of so many keys. */
async function lastOf(
  db: Kysely<Tables>,
  after: ListPosition | undefined,
  count: number,
  among: Condition = (row) => row.lit(true),
): Promise<ListPosition | undefined> {
  const row = await selectKeys(db, { after }, among)
    .select(['created_at', 'id'])
    .offset(count - 1)
    .limit(1)
    .executeTakeFirst();
  return row && positionOf(row);
}

/**
 * The positions of some keys, in their order: between two of them are about so many as a slice has. To count them would
 * take half as long as to read them. So they are those with certain row numbers, whatever order the rows have.
 */
async function samplePositions(db: Kysely<Tables>, dialect: DialectName, step: number): Promise<ListPosition[]> {
  const select = db.selectFrom('api_keys').select(['created_at', 'id']);
  const rows =
    dialect === 'postgres'
      ? await select.orderBy('id').limit(SAMPLE_KEYS).execute()
      : await select.where(sql<SqlBool>`rowid in (${rowNumbersBy(await rowNumbers(db), step)})`).execute();
  return rows.map(positionOf).toSorted(compare);
}

function rowNumbersBy({ first, last }: { first: number; last: number }, step: number): RawBuilder<unknown> {
  const numbers = Array.from({ length: Math.floor((last - first) / step) }, (_, index) => first + (index + 1) * step);
  return sql`select value from json_each(${JSON.stringify(numbers)})`;
}

/**
 * Counts the keys by their status, with their ancestors counted, in slices between which others have their turns. What
 * changes meanwhile may be counted as it was or as it is.
 * @param now milliseconds since 1970
 */
export async function countKeys(connection: Connection, now: number): Promise<KeyCounts> {
  const counts = { ACTIVE: 0, DISABLED: 0, EXPIRED: 0 };
  let nextExpiry: number | null = null;
  const creators = new Creators(connection, now);
  for await (const slice of slicesAfter(connection, undefined, () => creators.learnAll())) {
    const select = (db: Kysely<Tables>) => selectKeys(db, slice, (row) => row.lit(true)).clearOrderBy();
    await creators.learnOf(select);
    const has = (is: Status) => hasStatus(connection.dialect, { is, now }, creators);
    const earliest: number = nextExpiry ?? Number.MAX_SAFE_INTEGER;
    const found = await connection.run((db) =>
      select(db)
        .select([
          sql<number>`count(*)`.as('keys'),
          sql<number>`count(case when ${has('EXPIRED')} then 1 end)`.as('expired'),
          sql<number>`count(case when ${has('DISABLED')} then 1 end)`.as('disabled'),
          sql<number | null>`min(case when expires_at < ${earliest} and ${has('ACTIVE')} then expires_at end)`.as(
            'next',
          ),
        ])
        .executeTakeFirstOrThrow(),
    );
    const [keys, expired, disabled] = [Number(found.keys), Number(found.expired), Number(found.disabled)];
    counts.EXPIRED += expired;
    counts.DISABLED += disabled;
    counts.ACTIVE += keys - expired - disabled;
    if (found.next !== null) nextExpiry = Number(found.next);
    await yieldToEventLoop();
  }
  return { counts, nextExpiry };
}

/** Where a key stands in their order. */
function positionOf(row: Pick<ApiKeyTable, 'created_at' | 'id'>): ListPosition {
  return { createdAt: Number(row.created_at), id: row.id };
}

/**
 * Those that a key created, and maybe that key itself, by the index of creators, which is in the order of the list;
 * undefined where many of them have to be read.
 */
async function* searchChildren(
  connection: Connection,
  query: KeySlice,
  { creator, isOne }: { creator: string; isOne: boolean },
  reader: KeyReader,
): Search<ApiKeyTable[]> {
  const found = isOne ? await reader.read(query, (row) => row('id', '=', creator)) : [];
  const isCreated = isCreatedBy(creator);
  let after = query.after;
  for (let read = 0; read < MAX_BY_INDEX; read += FIRST_KEYS) {
    const start = after;
    after = await connection.run((db) => lastOf(db, start, FIRST_KEYS, isCreated));
    found.push(...(await reader.read({ after: start, upTo: after, limit: query.limit }, isCreated)));
    // The key itself may come after them.
    if (!after || found.length > query.limit) return found.toSorted(inOrder).slice(0, query.limit);
    yield;
  }
  return undefined;
}

/** Those that expire between two times, by the index of expiries; undefined where they are many. */
async function* searchEnding(
  connection: Connection,
  query: KeySlice,
  ends: NonNullable<KeyFilter['expires']>,
  reader: KeyReader,
): Search<ApiKeyTable[]> {
  const ids = await connection.run((db) => findEnding(db, ends, MAX_BY_INDEX + 1));
  yield;
  return ids.length > MAX_BY_INDEX ? undefined : reader.read(query, isAmongIds(connection.dialect, ids));
}

/** The ids of keys that expire between two times, the first of them first. */
export async function findEnding(
  db: Kysely<Tables>,
  { after, until }: NonNullable<KeyFilter['expires']>,
  limit: number,
): Promise<string[]> {
  const rows = await db
    .selectFrom('api_keys')
    .select('id')
    .where('expires_at', '>', after)
    .where('expires_at', '<=', until)
    .orderBy('expires_at')
    .orderBy('id')
    .limit(limit)
    .execute();
  return idsOf(rows);
}

/** Those with a label, whose index is in the order of the list. */
async function* searchLabelled(
  connection: Connection,
  query: KeySlice,
  label: string,
  reader: KeyReader,
): Search<ApiKeyTable[]> {
  const found: ApiKeyTable[] = [];
  for (let { after } = query; ;) {
    const start = after;
    const ids = await connection.run((db) => findLabelled(db, label, { after: start, limit: FIRST_KEYS }));
    const limit = query.limit - found.length;
    found.push(...(await reader.read({ limit }, isAmongIds(connection.dialect, idsOf(ids)))));
    if (found.length >= query.limit || ids.length < FIRST_KEYS) return found;
    after = ids.at(-1);
    yield;
  }
}

/** Where keys with a label stand, in the order of the list, or the other way round. */
export async function findLabelled(
  db: Kysely<Tables>,
  label: string,
  { after, limit, descending }: { after?: ListPosition | undefined; limit: number; descending?: boolean },
): Promise<ListPosition[]> {
  const direction = descending ? 'desc' : 'asc';
  const rows = await db
    .selectFrom('key_labels')
    .select(['created_at', 'key_id as id'])
    .where('label', '=', label)
    .$if(after !== undefined, (select) =>
      select.where((row) => row(row.refTuple('created_at', 'key_id'), '>', row.tuple(after!.createdAt, after!.id))),
    )
    .orderBy('created_at', direction)
    .orderBy('key_id', direction)
    .limit(limit)
    .execute();
  return rows.map(positionOf);
}

function isAmongIds(dialect: DialectName, ids: readonly string[]): Condition {
  return () => sql<SqlBool>`id ${amongIds(dialect, ids)}`;
}

/** The most keys that are named by one text as owners: people may be called the same. */
const MAX_OWNERS = 100;

/** To whom keys answer: see `KeyFilter.owner`. */
export interface Owners {
  /** The keys and people who are called so. */
  readonly ids: ReadonlySet<string>;
  /** What keys have whose owner they are. */
  readonly label: string;
  /** Whether no key answers to them. */
  readonly isNobody: boolean;
}

export async function findOwners(connection: Connection, owner: string): Promise<Owners> {
  const line = sql<string>`cast(${'\n'} as text)`;
  const text = searchTextOf({ name: owner });
  const label = labelOfOwner(owner);
  const isCalled = has(connection.dialect, sql`(${line} || ${SEARCH_TEXT} || ${line})`, `\n${text}\n`);
  return connection.run(async (db) => {
    const rows = [
      ...(await db.selectFrom('api_keys').select('id').where('name', '=', owner).execute()),
      ...(await db
        .selectFrom('api_keys')
        .select('id')
        .where('person', 'is not', null)
        .where(isCalled)
        .orderBy('id')
        .limit(MAX_OWNERS)
        .execute()),
    ];
    const ids = new Set(rows.map(({ id }) => id));
    return { ids, label, isNobody: ids.size === 0 && (await findLabelled(db, label, { limit: 1 })).length === 0 };
  });
}

/** The keys that are the owners, or have them as owners. @param limit of the latter */
export async function findOwned(db: Kysely<Tables>, { ids, label }: Owners, limit: number): Promise<Set<string>> {
  const labelled = await findLabelled(db, label, { limit });
  return new Set([...ids, ...labelled.map(({ id }) => id)]);
}

/** Keys, those that they created, and so on, by the index of creators; undefined where they are many. */
async function* searchFamily(
  connection: Connection,
  query: KeySlice,
  owners: Owners,
  reader: KeyReader,
): Search<ApiKeyTable[]> {
  const family = await connection.run((db) => findOwned(db, owners, MAX_BY_INDEX + 1));
  for (let generation = [...family]; generation.length > 0;) {
    if (family.size > MAX_BY_INDEX) return undefined;
    const next: string[] = [];
    for (const chunk of chunksOf(generation)) {
      const rows = await connection.run((db) =>
        db
          .selectFrom('api_keys')
          .select('id')
          .where('created_by', 'in', chunk)
          .limit(MAX_BY_INDEX + 1)
          .execute(),
      );
      for (const { id } of rows) if (!family.has(id) && family.add(id)) next.push(id);
      if (family.size > MAX_BY_INDEX) return undefined;
      yield;
    }
    generation = next;
  }
  return reader.read(query, isAmongIds(connection.dialect, [...family]));
}

/** How many keys that were not used are read by their row numbers, and how many ids a piece merges. */
const [MAX_UNUSED, MERGED_KEYS] = [20_000, 16_000];

/** Those that were not used, by merging the ids of all keys with those of use; undefined where they are many. */
async function* searchUnused(connection: Connection, query: ListQuery, reader: KeyReader): Search<ApiKeyTable[]> {
  const numbers = yield* findUnused(connection, query, MAX_UNUSED);
  return numbers && reader.read(query, () => isAmong(numbers));
}

/** Whether a filter asks for keys that were not used, which `findUnused` finds. */
export function isMerged({ dialect }: Connection, { unusedSince, neverUsed }: KeyFilter): boolean {
  return dialect === 'sqlite' && (unusedSince !== undefined || neverUsed === true);
}

/**
 * The row numbers in an SQLite store of the keys that were not used, as a filter has it; undefined where they are more
 * than so many. Both tables have an order of ids, and SQLite merges what has the same order: that takes a tenth of the
 * time of looking up each key, without an index that each use would have to change.
 */
export async function* findUnused(
  connection: Connection,
  { unusedSince, neverUsed }: KeyFilter,
  most: number,
): Search<number[]> {
  const { first, last } = await connection.run(rowNumbers);
  const lastRow = unusedSince === undefined ? last : yield* lastRowBefore(connection, unusedSince, last);
  const wasUsed = neverUsed ? sql`last_used_at is not null` : sql`last_used_at >= ${unusedSince}`;
  const created = unusedSince === undefined ? sql`true` : sql`created_at < ${unusedSince}`;
  const found: number[] = [];
  for (const within of idRanges(last - first + 1)) {
    const unused = sql`select id from main.api_keys where ${within(sql.ref('id'))} and +rowid <= ${lastRow}
      except select key_id from key_usage where ${within(sql.ref('key_id'))} and ${wasUsed} order by 1`;
    const { rows } = await connection.run((db) =>
      sql<{ number: number }>`select stored.rowid as number from (${unused}) as unused
        cross join main.api_keys as stored on stored.id = unused.id
        where ${created} limit ${most + 1 - found.length}`.execute(db),
    );
    for (const { number } of rows) found.push(number);
    if (found.length > most) return undefined;
    yield;
  }
  return found;
}

/**
 * Conditions of which each id fulfils one, in their order: each for some of so many. Ids are random, so that those
 * which begin with each of so many hexadecimal numbers are about as many.
 */
export function idRanges(keys: number): ((id: RawBuilder<unknown>) => RawBuilder<SqlBool>)[] {
  const pieces = Math.max(Math.ceil(keys / MERGED_KEYS), 1);
  const starts = Array.from({ length: pieces }, (_, piece) =>
    Math.floor((piece * 0x1_00_00) / pieces)
      .toString(16)
      .padStart(4, '0'),
  );
  return starts.map((start, piece) => (id) => {
    const end = starts[piece + 1];
    const upper = end === undefined ? sql<SqlBool>`true` : sql<SqlBool>`${id} < ${end}`;
    return piece === 0 ? upper : sql<SqlBool>`${id} >= ${start} and ${upper}`;
  });
}

/** A row number after which no key was created before a time: mostly, rows are in the order of their creation. */
async function* lastRowBefore(connection: Connection, time: number, last: number): AsyncGenerator<void, number> {
  const isMany = await connection.run((db) => lastOf(db, { createdAt: time, id: BEFORE_IDS }, FIRST_KEYS));
  if (!isMany) return last;
  let lastRow = 0;
  for await (const keys of slicesAfter(connection, undefined, async () => true)) {
    const slice = createdBefore(time, { ...keys, limit: 0 });
    if (!slice) break;
    const row = await connection.run((db) =>
      selectKeys(db, slice, (key) => key.lit(true))
        .clearOrderBy()
        .select(sql<number | null>`max(+api_keys.rowid)`.as('last'))
        .executeTakeFirst(),
    );
    lastRow = Math.max(lastRow, row?.last ?? 0);
    yield;
  }
  return lastRow;
}

/** What takes one piece. */
async function* inOnePiece<Found>(work: () => Promise<Found>): Search<Found> {
  yield;
  return work();
}

/**
 * Whether PostgreSQL finds a text in a key that it finds by parts of it. Its index looks for one part after another,
 * and for no others. Planned by itself: where the sample that PostgreSQL has of a table has one key with the text, it
 * would read all keys in their order until there are enough.
 */
export function isFoundByParts(text: string, parts: readonly string[]): Expression<SqlBool> {
  // By the index: these have nothing that means something in a pattern, see `PLAIN_TRIGRAM`.
  const hasParts = parts.map((part) => sql`${SEARCH_TEXT} like ${`%${part}%`}`);
  const hasText = sql`strpos(${SEARCH_TEXT}, ${text}) > 0`;
  const found = sql`select ctid from api_keys where ${sql.join([...hasParts, hasText], sql` and `)}`;
  return sql<SqlBool>`api_keys.ctid = any(array(${found}))`;
}

/**
 * A search, piece by piece: SQLite reads in this process, and nothing else runs meanwhile. It returns what it found, or
 * undefined if it gives up.
 */
export type Search<Found> = AsyncGenerator<void, Found | undefined> & {
  /** How much time it gets for each millisecond of the one through all rows. Default: `INDEX_SHARE`. */
  share?: number;
};

/** How much time a search gets for each millisecond of the one through all rows. */
const [INDEX_SHARE, MERGE_SHARE, LABELLED_SHARE] = [3, 10, 0.5];

/**
 * What the first of several searches for the same found: the one through all rows, which comes first, or one through an
 * index, which gets more time, as most that is looked for is rare. Where that is the fastest, this takes a third more
 * time than it would by itself. Between the pieces, others have a turn.
 */
export async function firstFound<Found>([through, ...byIndex]: readonly Search<Found>[]): Promise<Found> {
  let entrants = [
    { search: through!, share: 1, spent: 0 },
    ...byIndex.map((search) => ({ search, share: search.share ?? INDEX_SHARE, spent: 0 })),
  ];
  for (;;) {
    const next = entrants.reduce((least, entrant) => (entrant.spent < least.spent ? entrant : least));
    const began = performance.now();
    const step = await next.search.next();
    if (step.done && step.value !== undefined) return step.value;
    if (step.done) entrants = entrants.filter((entrant) => entrant !== next);
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
    const rows = await db
      .selectFrom('api_keys')
      .select(SEARCH_TEXT.as('text'))
      .orderBy('id')
      .limit(SAMPLE_KEYS)
      .execute();
    // Few keys tell nothing of what may be many soon, and are found soon in any way.
    return rows.length < SAMPLE_KEYS ? undefined : rows.map((row) => row.text).join('\n');
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

/** How many row numbers the first piece of a search covers in the index, and how many rows a piece reads. */
const FIRST_NUMBERS = 131_072;
const PIECE_ROWS = 500;
/** Each piece has a cost of its own: after one that took less time than this, in milliseconds, the next covers more. */
const QUICK_MS = 2.5;
const GROWTH = 4;
/** The length of what the index has, and the most that is looked for in it, in code points. */
const [TRIGRAM, MAX_PHRASE] = [3, 64];
/** What the index has of a text with a NUL: see `indexedValues`. */
const TEXT_WITH_NUL = '"\u0001\u0001\u0001"';

/**
 * What to ask the index of an SQLite store for, so that it finds at least all keys that a search has to; undefined for
 * one that is too short.
 */
function buildPhrase(search: string): string | undefined {
  const characters = Array.from(searchTextOf({ name: search, description: null }));
  if (characters.length < TRIGRAM || search.includes('\0')) return undefined;
  const quoted = characters.slice(0, MAX_PHRASE).join('').replaceAll('"', '""');
  return `search_text : ("${quoted}" OR ${TEXT_WITH_NUL})`;
}

/**
 * The keys that are found among those that the index of an SQLite store has for a phrase, in their order; undefined for
 * what many keys have.
 */
async function* searchIndex(
  connection: Connection,
  query: KeySlice,
  phrase: string,
  reader: KeyReader,
): Search<ApiKeyTable[]> {
  let [found, count] = [[] as ApiKeyTable[], 0];
  const { first, last } = await connection.run(rowNumbers);
  for (let after = first - 1, width = FIRST_NUMBERS; after < last;) {
    const piece = { after, upTo: Math.min(after + width, last) };
    const began = performance.now();
    const numbers = await connection.run((db) => findRows(db, phrase, piece));
    width = performance.now() - began < QUICK_MS ? width * GROWTH : FIRST_NUMBERS;
    after = numbers.length < PIECE_ROWS ? piece.upTo : numbers.at(-1)!;
    count += numbers.length;
    if (count > MAX_BY_INDEX) return undefined;
    if (numbers.length > 0) {
      const slice = { ...query, upTo: found.length < query.limit ? undefined : positionOf(found.at(-1)!) };
      found = [...found, ...(await reader.read(slice, () => isAmong(numbers)))].toSorted(inOrder).slice(0, query.limit);
    }
    yield;
  }
  return found;
}

/** The row numbers that the index of an SQLite store has for a search; undefined for what many keys have. */
export async function findIndexed(connection: Connection, search: string): Promise<number[] | undefined> {
  const phrase = buildPhrase(search);
  if (phrase === undefined || !(await connection.run(isIndexed))) return undefined;
  const found: number[] = [];
  const { first, last } = await connection.run(rowNumbers);
  for (let after = first - 1; after < last;) {
    const piece = { after, upTo: last };
    const numbers = await connection.run((db) => findRows(db, phrase, piece));
    found.push(...numbers);
    if (found.length > MAX_BY_INDEX) return undefined;
    after = numbers.length < PIECE_ROWS ? last : numbers.at(-1)!;
    await yieldToEventLoop();
  }
  return found;
}

/** Whether the index belongs to the rows: SQLite doesn't promise that a VACUUM numbers them as before. */
async function isIndexed(db: Kysely<Tables>): Promise<boolean> {
  const { rows } = await sql<{ isIndexed: number }>`select
    (select max(rowid) from main.api_keys) is (select max(id) from api_keys_search_docsize) as "isIndexed"`.execute(db);
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

/** The rows of the keys whose names look like one of these: see `computeNameSkeleton`. */
export async function findLookalikes(
  db: Kysely<Tables>,
  dialect: DialectName,
  skeletons: readonly string[],
): Promise<ApiKeyTable[]> {
  const starts = skeletons.map((skeleton) => `"${indexedSkeleton(skeleton)}"`);
  const isFound = sql<SqlBool>`api_keys.rowid in (select rowid from api_keys_search
    where api_keys_search match ${`skeleton : (${starts.join(' OR ')})`})`;
  return db
    .selectFrom('api_keys')
    .selectAll()
    .$if(dialect === 'sqlite' && (await isIndexed(db)), (select) => select.where(isFound))
    .where('name_skeleton', 'in', skeletons)
    .execute();
}

export async function rowNumbers(db: Kysely<Tables>): Promise<{ first: number; last: number }> {
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

export function isAmong(numbers: readonly number[]) {
  return sql<SqlBool>`api_keys.rowid in (select value from json_each(${JSON.stringify(numbers)}))`;
}

function inOrder(one: ApiKeyTable, other: ApiKeyTable): number {
  return compare(positionOf(one), positionOf(other));
}

function compare(one: ListPosition, other: ListPosition): number {
  return one.createdAt - other.createdAt || Buffer.compare(Buffer.from(one.id), Buffer.from(other.id));
}
