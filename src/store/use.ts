import { type Kysely, type RawBuilder, sql } from 'kysely';
import { type KeyUse, USE, type UseTotals } from '../keys/key/index.ts';
import type { DialectName } from './connection.ts';
import { portOfStore } from './port-of-store.ts';
import { BEFORE_IDS, chunksOf, idsAmong, jsonRowId, jsonRowNumber, jsonRows, jsonRowsOf, toNumber } from './rows.ts';
import type { Tables } from './tables.ts';

/** How many keys with use are checked at once for being deleted. */
const SWEPT_KEYS = 1000;

/** The use of keys. */
export const use = portOfStore({
  port: USE,
  read: ({ run, connection: { dialect } }) => ({
    totals: (ids) => run((db) => findTotals(db, idsAmong(dialect, ids))),
    ofDeleted: (after) => run((db) => findDeleted(db, after)),
  }),
  write: ({ db, dialect }) => ({
    add: (uses) => addUses(db, dialect, uses),
    lock: (ids) => lockUses(db, dialect, ids),
    forget: (ids) => forgetUses(db, dialect, ids),
  }),
});

/** The total use of keys, by id. Unused keys are left out. */
async function findTotals(db: Kysely<Tables>, ids: readonly string[]): Promise<Map<string, UseTotals>> {
  const found = new Map<string, UseTotals>();
  for (const chunk of chunksOf(ids)) {
    const rows = await db
      .selectFrom('key_uses')
      .selectAll()
      .where('key_id', 'in', chunk)
      .where('last_used_at', 'is not', null)
      .execute();
    for (const { key_id: id, uses, last_used_at: last, previous_last_used_at: previous } of rows)
      found.set(id, { uses: Number(uses), lastUsedAt: toNumber(last), previousLastUsedAt: toNumber(previous) });
  }
  return found;
}

/**
 * Adds to the totals of keys, inside a write transaction. Keys that no longer exist are ignored. In PostgreSQL their rows
 * are locked before any other of their use and in the order of their ids: no two processes wait for each other.
 */
async function addUses(db: Kysely<Tables>, dialect: DialectName, uses: readonly KeyUse[]): Promise<void> {
  if (uses.length === 0) return;
  const sorted = uses.toSorted((one, other) => (one.id < other.id ? -1 : 1));
  const totals = sorted.map(({ id, uses: count, lastUsedAt, previousLastUsedAt }) => [
    id,
    count,
    lastUsedAt,
    previousLastUsedAt,
  ]);
  await sql`insert into key_uses (key_id, uses, last_used_at, previous_last_used_at)
    select ${jsonRowId(dialect, 0)}, ${jsonRowNumber(1)}, ${jsonRowNumber(2)}, ${jsonRowNumber(3)}
    from ${jsonRows(dialect, totals)} where ${isKnown(dialect)}
    on conflict (key_id) do update set uses = key_uses.uses + excluded.uses,
      last_used_at = ${latest('last_used_at')}, previous_last_used_at = ${latest('previous_last_used_at')}`.execute(db);
}

/** True if the key of a given row was used before, or exists. */
function isKnown(dialect: DialectName): RawBuilder<unknown> {
  return sql`(exists (select 1 from key_uses where key_id = ${jsonRowId(dialect, 0)})
    or exists (select 1 from api_keys where id = ${jsonRowId(dialect, 0)}))`;
}

/** The later one of the stored and the given time. */
function latest(column: 'last_used_at' | 'previous_last_used_at'): RawBuilder<number> {
  const [given, stored] = [sql.ref(`excluded.${column}`), sql.ref(`key_uses.${column}`)];
  return sql`case when ${given} is null or ${stored} > ${given} then ${stored} else ${given} end`;
}

/** Deleted keys among some keys with use, and the key to continue from. */
async function findDeleted(
  db: Kysely<Tables>,
  after = BEFORE_IDS,
): Promise<{ ids: string[]; next: string | undefined }> {
  const some = db.selectFrom('key_uses').select('key_id').where('key_id', '>', after).orderBy('key_id');
  const last = await some
    .offset(SWEPT_KEYS - 1)
    .limit(1)
    .executeTakeFirst();
  const rows = await db
    .selectFrom('key_uses')
    .select('key_id')
    .where('key_id', '>', after)
    .$if(last !== undefined, (query) => query.where('key_id', '<=', last!.key_id))
    .where((row) => row.not(row.exists(row.selectFrom('api_keys').select('id').whereRef('id', '=', 'key_uses.key_id'))))
    .orderBy('key_id')
    .execute();
  return { ids: rows.map(({ key_id: id }) => id), next: last?.key_id };
}

/** Locks the totals of keys in PostgreSQL, in the order of their ids. A file has one writer. */
async function lockUses(db: Kysely<Tables>, dialect: DialectName, ids: readonly string[]): Promise<void> {
  if (dialect === 'postgres')
    await sql`select from key_uses where key_id in (select ${jsonRowId(dialect, 0)} from ${jsonRowsOf(dialect, ids)})
      order by key_id for update`.execute(db);
}

/** Removes the use of keys that were deleted. */
async function forgetUses(db: Kysely<Tables>, dialect: DialectName, ids: readonly string[]): Promise<void> {
  await sql`delete from key_uses
    where key_id in (select ${jsonRowId(dialect, 0)} from ${jsonRowsOf(dialect, ids)})
      and not exists (select 1 from api_keys where id = key_id)`.execute(db);
}
