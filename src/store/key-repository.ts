import type { KeyObject } from 'node:crypto';
import { type Expression, type ExpressionBuilder, type Kysely, type RawBuilder, type SqlBool, sql } from 'kysely';
import { MAX_CHAIN_LENGTH } from '../keys/authorization/chain.ts';
import type { ApiKey } from '../keys/key/api-key.ts';
import type { AuditQuery } from '../keys/audit/audit-entry.ts';
import type { KeyFilter, KeyFinder, KeyRepository, KeyWriter, ListPosition, ListQuery } from '../keys/repository.ts';
import type { Status } from '../keys/key/status.ts';
import { appendToAuditLog, auditReaderOf, pruneAuditLog } from './audit-log.ts';
import { chunksOf } from './chunks.ts';
import type { Connection, DialectName } from './connection.ts';
import { addRotatedSecrets, findByRotatedDigest, forgetRotatedSecrets } from './rotated-secrets.ts';
import { apiKeyOf, nameSkeletonOf, rowOf, searchTextOf, storedKeyOf } from './rows.ts';
import { searchAuditLog, searchKeys } from './searches.ts';
import type { ApiKeyTable, Tables } from './tables.ts';
import { addUsage, findUsage, findUsedPermissions } from './usage.ts';

const COLUMNS = { id: 'id', name: 'name', publicId: 'public_id' } as const;

/** The repository over an open database, with the key of its audit log, if it has one. */
export function createKeyRepository(connection: Connection, auditKey?: KeyObject): KeyRepository {
  const { dialect } = connection;
  const run: Connection['run'] = (work) => connection.run(work);
  const reader = auditReaderOf(run, auditKey);
  return {
    findById: (id) => run((db) => finderOf(db, apiKeyOf).findById(id)),
    findByName: (name) => run((db) => finderOf(db, apiKeyOf).findByName(name)),
    findBy: (field, values) => run((db) => finderOf(db, apiKeyOf).findBy(field, values)),
    findConfusable: (names) => run((db) => finderOf(db, apiKeyOf).findConfusable(names)),
    findManaged: () => run((db) => finderOf(db, apiKeyOf).findManaged()),
    findAncestors: (ids) => run((db) => finderOf(db, apiKeyOf).findAncestors(ids)),
    findWithDescendants: (ids) => run((db) => finderOf(db, apiKeyOf).findWithDescendants(ids)),
    findUsage: (ids) => run((db) => findUsage(db, ids)),
    findUsedPermissions: (ids) => run((db) => findUsedPermissions(db, ids)),
    revision: () => connection.revision(),
    auditLog: {
      ...reader,
      find: (query) => (dialect === 'sqlite' && isSearch(query) ? searchAuditLog(reader, query) : reader.find(query)),
    },

    findByDigest: (digest) =>
      run(async (db) => {
        const [row] = await selectByDigests(db, [digest]);
        if (!row) return findByRotatedDigest(db, digest);
        const [key, isCurrent] = [apiKeyOf(row), row.digest === digest];
        return isCurrent
          ? { key, secret: 'current', publicId: key.publicId }
          : { key, secret: 'previous', publicId: key.rotation!.previousPublicId };
      }),

    async list(query) {
      const condition = (row: ExpressionBuilder<Tables, 'api_keys'>) => matching(row, query, dialect);
      const rows =
        dialect === 'sqlite' && (query.search ?? query.roles ?? query.status) !== undefined
          ? await searchKeys(connection, query, (db, slice) => selectPage(db, slice, condition))
          : await run((db) => selectPage(db, query, condition));
      return rows.map(apiKeyOf);
    },

    listCreatedBy: (creators, page) =>
      run(async (db) => {
        const rows = await selectPage(db, page, (row) =>
          creators ? row('created_by', 'in', creators) : row('created_by', 'is', null),
        );
        return rows.map(storedKeyOf);
      }),

    write: (work, options) =>
      connection.write((transaction, changed) => work(writerOf(transaction, { changed, auditKey })), options),

    check: () => run(async (db) => void (await db.selectFrom('api_keys').select('id').limit(1).execute())),
  };
}

function finderOf<Key extends ApiKey>(db: Kysely<Tables>, keyOf: (row: ApiKeyTable) => Key): KeyFinder<Key> {
  return {
    async findById(id) {
      const row = await db.selectFrom('api_keys').selectAll().where('id', '=', id).executeTakeFirst();
      return row && keyOf(row);
    },

    async findByName(name) {
      const row = await db.selectFrom('api_keys').selectAll().where('name', '=', name).executeTakeFirst();
      return row && keyOf(row);
    },

    async findBy(field, values) {
      const rows = [];
      for (const chunk of chunksOf(values))
        rows.push(...(await db.selectFrom('api_keys').selectAll().where(COLUMNS[field], 'in', chunk).execute()));
      return rows.map(keyOf);
    },

    async findConfusable(names) {
      const rows = [];
      for (const chunk of chunksOf([...new Set(names.map(nameSkeletonOf))]))
        rows.push(...(await db.selectFrom('api_keys').selectAll().where('name_skeleton', 'in', chunk).execute()));
      return rows.map(keyOf);
    },

    async findManaged() {
      const rows = await db.selectFrom('api_keys').selectAll().where('managed', '=', 1).execute();
      return rows.map(keyOf);
    },

    async findAncestors(ids) {
      const found = new Map<string, Key>();
      for (const chunk of chunksOf(ids)) {
        const rows = await db
          .withRecursive('ancestors(id, created_by, generation)', (query) =>
            query
              .selectFrom('api_keys')
              .where('id', 'in', chunk)
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
          .where('id', 'in', (query) => query.selectFrom('ancestors').select('ancestors.id'))
          .selectAll('api_keys')
          .execute();
        for (const row of rows) found.set(row.id, keyOf(row));
      }
      return found;
    },

    async findWithDescendants(ids) {
      const found = new Map<string, Key>();
      for (const chunk of chunksOf(ids)) {
        const rows = await db
          .withRecursive('family(id)', (query) =>
            query
              .selectFrom('api_keys')
              .where('id', 'in', chunk)
              .select('id')
              .union(
                query
                  .selectFrom('api_keys as child')
                  .innerJoin('family', 'family.id', 'child.created_by')
                  .select('child.id'),
              ),
          )
          .selectFrom('family')
          .innerJoin('api_keys', 'api_keys.id', 'family.id')
          .selectAll('api_keys')
          .execute();
        for (const row of rows) found.set(row.id, keyOf(row));
      }
      return creatorsFirst(found);
    },
  };
}

function writerOf(
  db: Kysely<Tables>,
  { changed: keysChanged, auditKey }: { changed: () => void; auditKey: KeyObject | undefined },
): KeyWriter {
  return {
    ...finderOf(db, storedKeyOf),

    async findByDigests(digests) {
      const rows = [];
      for (const chunk of chunksOf(digests)) rows.push(...(await selectByDigests(db, chunk)));
      return rows.map(storedKeyOf);
    },

    async insert(keys) {
      keysChanged();
      for (const chunk of chunksOf(keys)) await db.insertInto('api_keys').values(chunk.map(rowOf)).execute();
    },

    async update(before, after) {
      keysChanged();
      // A database user may have the right to change some columns only.
      const old = rowOf(before);
      const changed = Object.entries(rowOf(after)).filter(
        ([column, value]) => value !== old[column as keyof ApiKeyTable],
      );
      if (changed.length > 0)
        await db.updateTable('api_keys').set(Object.fromEntries(changed)).where('id', '=', before.id).execute();
    },

    async delete(ids) {
      keysChanged();
      for (const chunk of chunksOf(ids)) await db.deleteFrom('api_keys').where('id', 'in', chunk).execute();
    },

    addUsage: (usage) => addUsage(db, usage),
    addRotatedSecrets: (secrets) => addRotatedSecrets(db, secrets),
    forgetRotatedSecrets: (before) => forgetRotatedSecrets(db, before),
    auditLog: auditReaderOf((work) => work(db), auditKey),
    appendToAuditLog: (entries) => appendToAuditLog(db, entries, auditKey),
    pruneAuditLog: (last) => pruneAuditLog(db, last),
  };
}

/** A page of keys, by time of creation, then id. */
function selectPage(
  db: Kysely<Tables>,
  { after, upTo, limit }: Pick<ListQuery, 'after' | 'limit'> & { upTo?: ListPosition },
  condition: (row: ExpressionBuilder<Tables, 'api_keys'>) => Expression<SqlBool>,
): Promise<ApiKeyTable[]> {
  return db
    .selectFrom('api_keys')
    .selectAll()
    .where(condition)
    .$if(after !== undefined, (select) =>
      select.where((row) => row(row.refTuple('created_at', 'id'), '>', row.tuple(after!.createdAt, after!.id))),
    )
    .$if(upTo !== undefined, (select) =>
      select.where((row) => row(row.refTuple('created_at', 'id'), '<=', row.tuple(upTo!.createdAt, upTo!.id))),
    )
    .orderBy('created_at')
    .orderBy('id')
    .limit(limit)
    .execute();
}

/** Whether a query may have to read the whole log. Entries of a key are found by an index. */
function isSearch({ key, actor, action, since, until }: AuditQuery): boolean {
  return key === undefined && (actor ?? action ?? since ?? until) !== undefined;
}

function selectByDigests(db: Kysely<Tables>, digests: readonly string[]): Promise<ApiKeyTable[]> {
  return db
    .selectFrom('api_keys')
    .selectAll()
    .where((row) => row.or([row('digest', 'in', digests), row('previous_digest', 'in', digests)]))
    .execute();
}

function matching(
  row: ExpressionBuilder<Tables, 'api_keys'>,
  { search, ownedBy, roles, status }: KeyFilter,
  dialect: DialectName,
) {
  const has = (column: 'roles' | 'search_text', text: string) => contains(dialect, column, text);
  const conditions = [];
  if (search !== undefined) conditions.push(has('search_text', searchTextOf({ name: search, description: null })));
  if (roles !== undefined) conditions.push(row.or(roles.map((role) => has('roles', `"${role}"`))));
  if (status !== undefined) conditions.push(havingStatus(status));
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

/** `chainStatus` in SQL. Most keys have no creator, which costs no subquery. */
function havingStatus({ is, now }: { is: Status; now: number }): RawBuilder<SqlBool> {
  const rank = sql`case when expires_at <= ${now} then ${RANKS.EXPIRED}
    when disabled_at is not null then ${RANKS.DISABLED} else ${RANKS.ACTIVE} end`;
  return sql<SqlBool>`${RANKS[is]} = case when created_by is null then ${rank} else (
    with recursive chain(created_by, expires_at, disabled_at, generation) as (
      select api_keys.created_by, api_keys.expires_at, api_keys.disabled_at, 0
      union all
      select creator.created_by, creator.expires_at, creator.disabled_at, chain.generation + 1
        from chain join api_keys as creator on creator.id = chain.created_by
        where chain.generation < ${MAX_CHAIN_LENGTH})
    select max(case when generation >= ${MAX_CHAIN_LENGTH} and ${RANKS.DISABLED} > ${rank}
      then ${RANKS.DISABLED} else ${rank} end) from chain) end`;
}

/** The highest in a chain counts. */
const RANKS: Readonly<Record<Status, RawBuilder<number>>> = { ACTIVE: sql`0`, DISABLED: sql`1`, EXPIRED: sql`2` };

/**
 * Sorts keys by age, each after the key that created it. Sorted by the database, the query would scan all keys in that
 * order.
 */
function creatorsFirst<Key extends ApiKey>(keys: ReadonlyMap<string, Key>): Key[] {
  const byAge = [...keys.values()].toSorted(
    (one, other) => one.createdAt - other.createdAt || (one.id < other.id ? -1 : 1),
  );
  const created = Map.groupBy(byAge, ({ createdBy }) =>
    createdBy !== null && keys.has(createdBy) ? createdBy : undefined,
  );
  const sorted = [...(created.get(undefined) ?? [])];
  for (const { id } of sorted) for (const child of created.get(id) ?? []) sorted.push(child);
  return sorted;
}
