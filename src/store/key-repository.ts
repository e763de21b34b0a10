import { type Expression, type ExpressionBuilder, type Kysely, type RawBuilder, type SqlBool, sql } from 'kysely';
import { MAX_CHAIN_LENGTH } from '../keys/authorization/chain.ts';
import type { ApiKey } from '../keys/key/api-key.ts';
import type { KeyFilter, KeyFinder, KeyRepository, KeyWriter, ListQuery } from '../keys/repository.ts';
import type { Status } from '../keys/key/status.ts';
import { appendToAuditLog, findAuditEntries, findAuditHead } from './audit-log.ts';
import { chunksOf } from './chunks.ts';
import type { Connection, DialectName } from './connection.ts';
import { apiKeyOf, rowOf, searchTextOf, storedKeyOf } from './rows.ts';
import type { ApiKeyTable, Tables } from './tables.ts';
import { addUsage, findUsage, findUsedPermissions } from './usage.ts';

const COLUMNS = { id: 'id', name: 'name', publicId: 'public_id' } as const;

/** The repository over an open database. */
export function createKeyRepository(connection: Connection): KeyRepository {
  const { dialect } = connection;
  const run: Connection['run'] = (work) => connection.run(work);
  return {
    findById: (id) => run((db) => finderOf(db, apiKeyOf).findById(id)),
    findByName: (name) => run((db) => finderOf(db, apiKeyOf).findByName(name)),
    findBy: (field, values) => run((db) => finderOf(db, apiKeyOf).findBy(field, values)),
    findManaged: () => run((db) => finderOf(db, apiKeyOf).findManaged()),
    findAncestors: (ids) => run((db) => finderOf(db, apiKeyOf).findAncestors(ids)),
    findWithDescendants: (ids) => run((db) => finderOf(db, apiKeyOf).findWithDescendants(ids)),
    findUsage: (ids) => run((db) => findUsage(db, ids)),
    findUsedPermissions: (id) => run((db) => findUsedPermissions(db, id)),
    revision: () => connection.revision(),
    auditLog: {
      find: (query) => run((db) => findAuditEntries(db, query)),
      head: () => run((db) => findAuditHead(db)),
    },

    findByDigest: (digest) =>
      run(async (db) => {
        const [row] = await selectByDigests(db, [digest]);
        return row && { key: apiKeyOf(row), secret: row.digest === digest ? 'current' : 'previous' };
      }),

    list: (query) =>
      run(async (db) => (await selectPage(db, query, (row) => matching(row, query, dialect))).map(apiKeyOf)),

    listCreatedBy: (creators, page) =>
      run(async (db) => {
        const rows = await selectPage(db, page, (row) =>
          creators ? row('created_by', 'in', creators) : row('created_by', 'is', null),
        );
        return rows.map(storedKeyOf);
      }),

    write: (work) => connection.write((transaction, changed) => work(writerOf(transaction, changed))),

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

function writerOf(db: Kysely<Tables>, keysChanged: () => void): KeyWriter {
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
    appendToAuditLog: (entries) => appendToAuditLog(db, entries),
  };
}

/** A page of keys, by time of creation, then id. */
function selectPage(
  db: Kysely<Tables>,
  { after, limit }: Pick<ListQuery, 'after' | 'limit'>,
  condition: (row: ExpressionBuilder<Tables, 'api_keys'>) => Expression<SqlBool>,
): Promise<ApiKeyTable[]> {
  return db
    .selectFrom('api_keys')
    .selectAll()
    .where(condition)
    .$if(after !== undefined, (select) =>
      select.where((row) => row(row.refTuple('created_at', 'id'), '>', row.tuple(after!.createdAt, after!.id))),
    )
    .orderBy('created_at')
    .orderBy('id')
    .limit(limit)
    .execute();
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
  if (status !== undefined) conditions.push(havingStatus(row, status));
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

/** `chainStatus` in SQL. */
function havingStatus(row: ExpressionBuilder<Tables, 'api_keys'>, { is, now }: { is: Status; now: number }) {
  const isExpired = row.or([row('expires_at', '<=', now), hasAncestor(sql`expires_at <= ${now}`)]);
  if (is === 'EXPIRED') return isExpired;
  const isDisabled = row.or([
    row('disabled_at', 'is not', null),
    hasAncestor(sql`disabled_at is not null or generation >= ${MAX_CHAIN_LENGTH}`),
  ]);
  return row.and([not(isExpired), is === 'DISABLED' ? isDisabled : not(isDisabled)]);
}

/** Whether a condition holds for an ancestor of the key. Most keys have none, which costs no subquery. */
function hasAncestor(condition: RawBuilder<unknown>): RawBuilder<SqlBool> {
  return sql<SqlBool>`(api_keys.created_by is not null and exists (
    with recursive ancestors(id, created_by, expires_at, disabled_at, generation) as (
      select creator.id, creator.created_by, creator.expires_at, creator.disabled_at, 1
        from api_keys as creator where creator.id = api_keys.created_by
      union all
      select creator.id, creator.created_by, creator.expires_at, creator.disabled_at, ancestors.generation + 1
        from ancestors join api_keys as creator on creator.id = ancestors.created_by
        where ancestors.generation < ${MAX_CHAIN_LENGTH})
    select 1 from ancestors where ${condition}))`;
}

/** True where a condition is false or unknown. */
function not(condition: Expression<SqlBool>): RawBuilder<SqlBool> {
  return sql<SqlBool>`(${condition}) is not true`;
}

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
