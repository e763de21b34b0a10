import { type Kysely, type RawBuilder, sql, type SqlBool } from 'kysely';
import { chainOf, chainStatus, type Link } from '../keys/authorization/index.ts';
import { yieldToEventLoop } from '../keys/basics/index.ts';
import type { Status } from '../keys/key/index.ts';
import type { KeyCounts, KeyFilter, ListPosition, ListQuery } from '../keys/repository/index.ts';
import type { Connection, DialectName } from './connection.ts';
import { amongIds, chunksOf, identityLabel, idsOf, isId, labelsOf, searchTextOf } from './rows.ts';
import { addAncestors, type Condition, findFamily, type KeyColumns, selectKeys } from './select-keys.ts';
import type { ApiKeyTable, Tables } from './tables.ts';

/** The keys that match a query, by time of creation, then id. */
export async function findKeys(connection: Connection, query: ListQuery): Promise<ApiKeyTable[]> {
  const { after, limit } = query;
  if (!isFiltered(query))
    return connection.run((db) =>
      selectKeys(db, query, (row) => row.lit(true))
        .selectAll()
        .limit(limit)
        .execute(),
    );
  const found: string[] = [];
  for await (const positions of positionsOf(connection, query, { after, limit })) found.push(...idsOf(positions));
  return (await readRows(connection, found)).toSorted(inOrder);
}

/** True if a filter has any condition. */
export function isFiltered(filter: KeyFilter): boolean {
  const { search, roles, status, ownedBy, createdBy, expires, unusedSince, neverUsed } = filter;
  const given = [search, roles, status, ownedBy, createdBy, expires, unusedSince, neverUsed];
  return given.some((value) => value !== undefined) || labelsOf(filter).length > 0;
}

/** A range of keys in list order, and how many of them are needed. */
interface KeySlice {
  after?: ListPosition | undefined;
  upTo?: ListPosition | undefined;
  limit: number;
  /** True to read the last ones, in reverse order. */
  descending?: boolean | undefined;
}

/**
 * The positions of keys that match a filter and a further condition, in list order, a few at a time. A few keys are
 * found through an index; otherwise, keys are read in order, in windows, so that others get their turns.
 */
export async function* positionsOf(
  connection: Connection,
  filter: KeyFilter,
  { after, limit, descending = false }: Omit<KeySlice, 'upTo'>,
  isOne: Condition = (row) => row.lit(true),
): AsyncGenerator<ListPosition[]> {
  const owners = await ownersOf(connection, filter);
  if (owners?.isNobody || isOfNobody(connection, filter)) return;
  const reader = new KeyReader(connection, filter, owners);
  const candidates = await findCandidates(connection, filter, { owners, reader });
  if (candidates) {
    const isCandidate = isAmongIds(connection.dialect, candidates);
    yield await reader.positions({ after, limit, descending }, (row) => row.and([isCandidate(row), isOne(row)]));
    return;
  }
  let left = limit;
  for await (const window of windowsOf(connection, { after, descending, isWhole: reader.knowsAll })) {
    const found = await reader.positions({ ...window, limit: left }, isOne);
    yield found;
    left -= found.length;
    if (left <= 0) return;
  }
}

/** The keys among these ids that match a filter. */
export async function matchingAmong(
  connection: Connection,
  filter: KeyFilter,
): Promise<(ids: readonly string[]) => Promise<ReadonlySet<string>>> {
  const reader = new KeyReader(connection, filter, await ownersOf(connection, filter));
  return async (ids) =>
    new Set(idsOf(await reader.positions({ limit: ids.length }, isAmongIds(connection.dialect, ids))));
}

/** True if a filter asks for child keys of an impossible id. */
function isOfNobody({ dialect }: Connection, { createdBy, ownedBy }: KeyFilter): boolean {
  return [createdBy, ownedBy].some((id) => id != null && !isId(dialect, id));
}

/** The labels that a key itself must have: an owner can be inherited. */
function ownLabelsOf(filter: KeyFilter): string[] {
  return labelsOf({ ...filter, owner: undefined });
}

/** The most keys that are read through an index; more are read faster in list order. */
const MAX_CANDIDATES = 3000;

/** The ids of all keys that can match a filter, from the first index that finds few. */
async function findCandidates(
  connection: Connection,
  filter: KeyFilter,
  { owners, reader }: { owners: Owners | undefined; reader: KeyReader },
): Promise<string[] | undefined> {
  const { createdBy, ownedBy, expires, search, unusedSince, neverUsed, status, roles } = filter;
  const limit = MAX_CANDIDATES + 1;
  const creator = createdBy ?? ownedBy;
  const lookups = [
    ...(creator === undefined ? [] : [() => findDescendants(connection, [creator], { limit, generations: 1 })]),
    ...(expires ? [() => findExpiring(connection, expires, limit)] : []),
    ...(status?.is === 'EXPIRED' ? [() => findExpired(connection, status.now, limit)] : []),
    ...ownLabelsOf(filter).map((label) => () => findLabelled(connection, label, limit)),
    ...(owners ? [() => findOwned(connection, owners, limit)] : []),
    ...(unusedSince === undefined && !neverUsed ? [] : [() => findUnused(connection, filter, limit)]),
    ...((roles || search !== undefined) && !reader.knowsAll ? [() => reader.findFew()] : []),
  ];
  for (const lookUp of lookups) {
    const ids = await lookUp();
    if (ids && ids.length < limit) return ids;
  }
  return undefined;
}

function findDescendants(
  connection: Connection,
  ids: readonly string[],
  bounds: Parameters<typeof findFamily>[2],
): Promise<string[]> {
  return connection.run((db) => findFamily(db, ids, bounds));
}

/** The ids of keys that expire between two times. */
async function findExpiring(
  connection: Connection,
  { after, until }: NonNullable<KeyFilter['expires']>,
  limit: number,
): Promise<string[]> {
  const rows = await connection.run((db) =>
    db
      .selectFrom('api_keys')
      .select('id')
      .where('expires_at', '>', after)
      .where('expires_at', '<=', until)
      .orderBy('expires_at')
      .limit(limit)
      .execute(),
  );
  return idsOf(rows);
}

/** The ids of keys that have expired themselves, and of all their child keys. */
async function findExpired(connection: Connection, now: number, limit: number): Promise<string[]> {
  const expired = await findExpiring(connection, { after: Number.MIN_SAFE_INTEGER, until: now }, limit);
  return findDescendants(connection, expired, { limit });
}

/** The ids of keys with a label. */
async function findLabelled(connection: Connection, label: string, limit: number): Promise<string[]> {
  const rows = await connection.run((db) =>
    db.selectFrom('key_labels').select('key_id as id').where('label', '=', label).limit(limit).execute(),
  );
  return idsOf(rows);
}

/** The ids of keys that belong to the owners. */
async function findOwned(connection: Connection, { ids, label }: Owners, limit: number): Promise<string[]> {
  return findDescendants(connection, [...ids, ...(await findLabelled(connection, label, limit))], { limit });
}

/** The ids of unused keys, whenever they were created. */
async function findUnused(
  connection: Connection,
  { unusedSince, neverUsed }: KeyFilter,
  limit: number,
): Promise<string[]> {
  const wasUsed = neverUsed ? sql`last_used_at is not null` : sql`last_used_at >= ${unusedSince}`;
  const found: string[] = [];
  for await (const within of idRanges(connection)) {
    const { rows } = await connection.run((db) => selectUnused(within, wasUsed, limit - found.length).execute(db));
    found.push(...idsOf(rows));
    if (found.length >= limit) break;
  }
  return found;
}

/**
 * The keys without a use that fulfils a condition. Both indexes are in the order of ids, so that databases merge them:
 * looking up each key takes several times as long.
 */
function selectUnused(
  within: (id: RawBuilder<unknown>) => RawBuilder<SqlBool>,
  wasUsed: RawBuilder<unknown>,
  limit: number,
): RawBuilder<{ id: string }> {
  return sql`select id from api_keys where ${within(sql.ref('id'))}
    except select key_id from key_uses where ${within(sql.ref('key_id'))} and ${wasUsed} order by 1 limit ${limit}`;
}

/** How many keys are merged with their uses at a time. */
const MERGED_KEYS = 16_000;

/**
 * Ranges of ids that cover all keys, in order. Others get their turns between them, and PostgreSQL keeps no one
 * waiting.
 */
export async function* idRanges(
  connection: Connection,
): AsyncGenerator<(id: RawBuilder<unknown>) => RawBuilder<SqlBool>> {
  let after: string | undefined;
  for (;;) {
    const start = after;
    const end =
      connection.dialect === 'postgres'
        ? undefined
        : await connection.run((db) =>
            db
              .selectFrom('api_keys')
              .select('id')
              .$if(start !== undefined, (select) => select.where('id', '>', start!))
              .orderBy('id')
              .offset(MERGED_KEYS)
              .limit(1)
              .executeTakeFirst(),
          );
    after = end?.id;
    yield (id) => {
      const isAfter = start === undefined ? sql`true` : sql`${id} > ${start}`;
      return sql<SqlBool>`${isAfter} and ${end ? sql`${id} <= ${end.id}` : sql`true`}`;
    };
    if (!end) return;
    await yieldToEventLoop();
  }
}

/** Reads the positions of keys that match a filter. */
class KeyReader {
  readonly #connection: Connection;
  readonly #filter: KeyFilter;
  readonly #owners: Owners | undefined;
  readonly #creators: Creators | undefined;

  /** @param owners limits the result to keys that belong to them */
  constructor(connection: Connection, filter: KeyFilter, owners: Owners | undefined) {
    this.#connection = connection;
    this.#filter = filter;
    this.#owners = owners;
    if (filter.status || owners) this.#creators = new Creators(connection, filter.status?.now ?? 0, owners);
  }

  /** True if a slice can be read without further queries. */
  get knowsAll(): boolean {
    return this.#creators === undefined;
  }

  /**
   * The ids of the keys that match all conditions except those on their creators; undefined if there are many. This
   * spares PostgreSQL from reading all keys twice. Undefined in SQLite, where one long statement would block others.
   */
  async findFew(): Promise<string[] | undefined> {
    if (this.#connection.dialect === 'sqlite') return undefined;
    const conditions = this.#conditions();
    const rows = await this.#connection.run((db) =>
      selectKeys(db, {}, (row) => row.and(conditions.map((condition) => condition(row))))
        .select('id')
        .limit(FIRST_KEYS)
        .execute(),
    );
    return rows.length < FIRST_KEYS ? idsOf(rows) : undefined;
  }

  /** The positions of keys in a slice that fulfil a further condition, in its order. */
  async positions(slice: KeySlice, isOne: Condition): Promise<ListPosition[]> {
    const conditions = [isOne, ...this.#conditions()];
    const select = (db: Kysely<Tables>) =>
      selectKeys(db, slice, (row) => row.and(conditions.map((condition) => condition(row))));
    if (this.#creators) {
      await this.#creators.learnOf(select);
      conditions.unshift(...this.#byCreators(this.#creators));
    }
    const rows = await this.#connection.run((db) =>
      select(db).select(['created_at', 'id']).limit(slice.limit).execute(),
    );
    return rows.map(positionOf);
  }

  /** In the order in which they are tested, the slowest last. */
  #conditions(): Condition[] {
    const { dialect } = this.#connection;
    const { search, roles, ownedBy, createdBy, expires, unusedSince, neverUsed } = this.#filter;
    return [
      // An index of ids or expiries is not in list order, and would be read completely for each window.
      ...(ownedBy === undefined
        ? []
        : [() => sql<SqlBool>`case when id = ${ownedBy} then true else created_by = ${ownedBy} end`]),
      ...(createdBy === undefined ? [] : [isCreatedBy(createdBy)]),
      ...(expires ? [() => sql<SqlBool>`(+expires_at > ${expires.after} and +expires_at <= ${expires.until})`] : []),
      ...(unusedSince === undefined ? [] : [(row: KeyColumns) => row('created_at', '<', unusedSince)]),
      ...(roles
        ? [
            () =>
              sql<SqlBool>`(${sql.join(
                roles.map((role) => has(dialect, sql.ref('roles'), `"${role}"`)),
                sql` or `,
              )})`,
          ]
        : []),
      ...(search === undefined ? [] : [() => has(dialect, SEARCH_TEXT, searchTextOf({ name: search }))]),
      ...ownLabelsOf(this.#filter).map((label) => () => hasLabel(label)),
      ...(neverUsed ? [() => wasNotUsed(sql`last_used_at is not null`)] : []),
      ...(unusedSince === undefined ? [] : [() => wasNotUsed(sql`last_used_at >= ${unusedSince}`)]),
    ];
  }

  #byCreators(creators: Creators): Condition[] {
    const { dialect } = this.#connection;
    const { status } = this.#filter;
    return [
      ...(this.#owners ? [answersTo(dialect, this.#owners, creators)] : []),
      ...(status ? [hasStatus(dialect, status, creators)] : []),
    ].map((condition) => () => condition);
  }
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

/**
 * The search text of a key. The index of the list order lacks the long column, so SQLite reads rows for keys without a
 * short text only.
 */
const SEARCH_TEXT = sql<string>`coalesce(short_text, long_text)`;

/** A condition that a text contains another one literally. */
function has(dialect: DialectName, text: RawBuilder<unknown>, part: string): RawBuilder<SqlBool> {
  // SQLite's LIKE stops at a NUL and ignores case.
  return sql<SqlBool>`${sql.raw(dialect === 'sqlite' ? 'instr' : 'strpos')}(${text}, ${part}) > 0`;
}

/** A condition that a key has a status, from its own fields and the known status of its creator. */
function hasStatus(
  dialect: DialectName,
  { is, now }: { is: Status; now: number },
  creators: Creators,
): RawBuilder<SqlBool> {
  const given = (ids: readonly string[]) => amongIds(dialect, ids);
  // A condition and its opposite, where null satisfies neither: converting it to a boolean costs as much as all the
  // rest.
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

/** A condition that a key is one of the owners, names them as its owner, or descends from such a key. */
function answersTo(dialect: DialectName, { ids, label }: Owners, creators: Creators): RawBuilder<SqlBool> {
  const [own, created] = [[...ids], creators.within()].map((found) => amongIds(dialect, found));
  return sql<SqlBool>`case when id ${own} then true when created_by is not null and created_by ${created} then true
    else ${hasLabel(label)} end`;
}

/**
 * A condition that a key has a label, by a complete index lookup: with "exists", PostgreSQL would use a join and,
 * without statistics, read all keys with the label for each key.
 */
function hasLabel(label: string): RawBuilder<SqlBool> {
  return sql<SqlBool>`(select 1 from key_labels where label = ${label}
    and key_labels.created_at = api_keys.created_at and key_id = api_keys.id) is not null`;
}

function isCreatedBy(creator: string | null): Condition {
  return (row) => (creator === null ? row('created_by', 'is', null) : row('created_by', '=', creator));
}

/** A condition that a key has no use that fulfils another one. */
export function wasNotUsed(use: RawBuilder<unknown>): RawBuilder<SqlBool> {
  return sql<SqlBool>`not exists (select 1 from key_uses where key_id = api_keys.id and ${use})`;
}

/** The keys that created others, and the status that those get from them. */
class Creators {
  readonly #connection: Connection;
  readonly #now: number;
  readonly #links = new Map<string, Link>();
  readonly #statuses = new Map<string, Status>();
  readonly #owners: Owners | undefined;
  /** Links that are among the owners, or have their label. */
  readonly #owning = new Set<string>();
  /** How many of the links were checked for ownership. */
  #looked = 0;

  constructor(connection: Connection, now: number, owners?: Owners) {
    this.#connection = connection;
    this.#now = now;
    this.#owners = owners;
  }

  /** The creators that are known to give their child keys a status. */
  withStatus(status: Status): string[] {
    return [...this.#statuses].flatMap(([id, known]) => (known === status ? id : []));
  }

  /** The creators that are known to belong to the owners. */
  within(): string[] {
    return [...this.#statuses.keys()].filter((id) =>
      chainOf(childOf(id), this.#links).keys.some((link) => this.#owning.has(link.id)),
    );
  }

  /** Loads the creators of the selected keys. */
  async learnOf(select: (db: Kysely<Tables>) => ReturnType<typeof selectKeys>): Promise<void> {
    // Forgets earlier ones, so that a statement gets no more than it needs.
    this.#statuses.clear();
    const rows = await this.#connection.run((db) =>
      db
        // In list order for PostgreSQL, which would otherwise read all keys if many have the same time; in the order of
        // creators for SQLite.
        .selectFrom(select(db).where('created_by', 'is not', null).select('created_by').as('keys'))
        .select(sql<string>`cast(created_by as text)`.as('creator'))
        .distinct()
        .execute(),
    );
    await this.#learn(rows.map(({ creator }) => creator));
  }

  async #learnOwning({ ids, label }: Owners): Promise<void> {
    for (const id of ids) this.#owning.add(id);
    const learned = [...this.#links.keys()].slice(this.#looked);
    this.#looked = this.#links.size;
    for (const chunk of chunksOf(learned)) {
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

/** A hypothetical child key, with all fields that matter here. */
function childOf(creator: string): Link {
  return { id: '', createdBy: creator, expiresAt: null, disabledAt: null };
}

/** How many keys are read first, and how many at a time afterwards. */
const FIRST_KEYS = 1000;
const WINDOW_KEYS: Record<DialectName, number> = { sqlite: 8000, postgres: 64_000 };

/**
 * All keys after a position, in windows, in list order or reversed. Others get their turns between them; PostgreSQL
 * keeps no one waiting, and uses one window where possible.
 */
async function* windowsOf(
  connection: Connection,
  {
    after,
    descending = false,
    isWhole = false,
  }: { after?: ListPosition | undefined; descending?: boolean; isWhole?: boolean } = {},
): AsyncGenerator<Omit<KeySlice, 'limit'>> {
  if (isWhole && connection.dialect === 'postgres') {
    yield { after, descending };
    return;
  }
  let [low, high] = [after, undefined as ListPosition | undefined];
  for (let size = FIRST_KEYS; ; size = WINDOW_KEYS[connection.dialect]) {
    const rest = { after: low, upTo: high, descending };
    // The last key of a window, or the one after it in reverse: a slice begins after a key and ends with one.
    const end = await connection.run((db) =>
      selectKeys(db, rest, (row) => row.lit(true))
        .select(['created_at', 'id'])
        .offset(descending ? size : size - 1)
        .limit(1)
        .executeTakeFirst(),
    );
    if (!end) {
      yield rest;
      return;
    }
    const border = positionOf(end);
    yield descending ? { ...rest, after: border } : { ...rest, upTo: border };
    if (descending) high = border;
    else low = border;
    await yieldToEventLoop();
  }
}

/**
 * Counts the keys by status, including ancestors, in slices between which others get their turns. A key that changes
 * during the count is counted in its old or new state.
 * @param now milliseconds since 1970
 */
export async function countKeys(connection: Connection, now: number): Promise<KeyCounts> {
  const counts = { ACTIVE: 0, DISABLED: 0, EXPIRED: 0 };
  let nextExpiry: number | null = null;
  const creators = new Creators(connection, now);
  for await (const slice of windowsOf(connection)) {
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
  }
  return { counts, nextExpiry };
}

/** The most keys that one text selects as owners, since identities can share a name. */
const MAX_OWNERS = 100;

/** The owners of keys: see `KeyFilter.owner`. */
interface Owners {
  /** The keys with the name, or of identities with it. */
  readonly ids: ReadonlySet<string>;
  /** The label of keys that name them as their owner. */
  readonly label: string;
  /** True if no key belongs to them. */
  readonly isNobody: boolean;
}

/** The owners that a filter asks for. */
async function ownersOf(connection: Connection, { owner }: KeyFilter): Promise<Owners | undefined> {
  if (owner === undefined) return undefined;
  const label = labelsOf({ owner })[0]!;
  return connection.run(async (db) => {
    const rows = [
      ...(await db.selectFrom('api_keys').select('id').where('name', '=', owner).execute()),
      ...(await db
        .selectFrom('key_labels')
        .select('key_id as id')
        .where('label', '=', identityLabel(owner))
        .orderBy('created_at')
        .orderBy('key_id')
        .limit(MAX_OWNERS)
        .execute()),
    ];
    const ids = new Set(rows.map(({ id }) => id));
    return { ids, label, isNobody: ids.size === 0 && !(await isLabel(db, label)) };
  });
}

async function isLabel(db: Kysely<Tables>, label: string): Promise<boolean> {
  return (await db.selectFrom('key_labels').select('key_id').where('label', '=', label).limit(1).execute()).length > 0;
}

function isAmongIds(dialect: DialectName, ids: readonly string[]): Condition {
  return () => sql<SqlBool>`id ${amongIds(dialect, ids)}`;
}

/** The position of a key in list order. */
function positionOf(row: Pick<ApiKeyTable, 'created_at' | 'id'>): ListPosition {
  return { createdAt: Number(row.created_at), id: row.id };
}

function inOrder(one: ApiKeyTable, other: ApiKeyTable): number {
  return compare(positionOf(one), positionOf(other));
}

function compare(one: ListPosition, other: ListPosition): number {
  return one.createdAt - other.createdAt || Buffer.compare(Buffer.from(one.id), Buffer.from(other.id));
}
