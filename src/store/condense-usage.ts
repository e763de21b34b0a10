import { type Kysely, type RawBuilder, sql, type SqlBool } from 'kysely';
import type { UsageBounds } from '../keys/repository.ts';
import { PERIOD_MS } from '../keys/usage/periods.ts';
import type { DialectName } from './connection.ts';
import { givenRows, givenText } from './given-rows.ts';
import { added, COUNTS, dayOf, type PeriodTable, SUMS } from './period-usage.ts';
import type { Tables } from './tables.ts';

/** The tables, each with the column that its rows are in the order of. */
const COLUMNS = { key_usage_hours: 'hour', key_usage_days: 'day' } as const satisfies Record<PeriodTable, string>;
const TABLES = Object.keys(COLUMNS) as PeriodTable[];

/** How many deleted keys are looked at, at once. */
const MAX_KEYS = 100;

/** Remembers which of these keys, which were deleted, leave use by hours or days. */
export async function noteLeftovers(db: Kysely<Tables>, dialect: DialectName, ids: readonly string[]): Promise<void> {
  const isUsed = sql.join(
    TABLES.map((table) => sql`exists (select 1 from ${sql.table(table)} where key_id = ${givenText(0)})`),
    sql` or `,
  );
  const given = givenRows(
    dialect,
    ids.map((id) => [id]),
  );
  await sql`insert into key_usage_leftovers (key_id) select ${givenText(0)} from ${given}
    where ${isUsed} on conflict do nothing`.execute(db);
}

/** See `KeyWriter.condenseUsage`. */
export async function condenseUsage(db: Kysely<Tables>, { hoursFrom, daysFrom, rows }: UsageBounds): Promise<boolean> {
  const hours = await findOldest(db, 'key_usage_hours', hoursFrom / PERIOD_MS.HOUR, rows);
  if (hours) {
    await sql`insert into key_usage_days (day, key_id, ${COUNTS})
      select ${dayOf('hour')}, key_id, ${SUMS} from key_usage_hours where ${hours.which} group by 1, 2
      on conflict (day, key_id) do update set ${added('key_usage_days')}`.execute(db);
    await sql`delete from key_usage_hours where ${hours.which}`.execute(db);
  }
  const days = await findOldest(db, 'key_usage_days', daysFrom / PERIOD_MS.DAY, rows);
  if (days) await sql`delete from key_usage_days where ${days.which}`.execute(db);
  const isClear = await removeLeftovers(db, rows);
  return isClear && !hours?.hasMore && !days?.hasMore;
}

/** Removes what deleted keys have left, key by key, until so many rows are gone. @returns whether nothing is left */
async function removeLeftovers(db: Kysely<Tables>, rows: number): Promise<boolean> {
  const leftovers = await db
    .selectFrom('key_usage_leftovers')
    .leftJoin('api_keys', 'api_keys.id', 'key_usage_leftovers.key_id')
    .select(['key_usage_leftovers.key_id', 'api_keys.id'])
    .orderBy('key_usage_leftovers.key_id')
    .limit(MAX_KEYS)
    .execute();
  let removed = 0;
  for (const { key_id: keyId, id } of leftovers) {
    if (removed >= rows) return false;
    // A key whose deletion was reverted has its use again.
    if (id === null)
      for (const table of TABLES) {
        const { numDeletedRows } = await db.deleteFrom(table).where('key_id', '=', keyId).executeTakeFirst();
        removed += Number(numDeletedRows);
      }
    await db.deleteFrom('key_usage_leftovers').where('key_id', '=', keyId).execute();
  }
  return leftovers.length < MAX_KEYS;
}

/** The oldest rows from before a period, if there are any, and whether there are more of them. */
async function findOldest(
  db: Kysely<Tables>,
  table: PeriodTable,
  before: number,
  count: number,
): Promise<{ which: RawBuilder<SqlBool>; hasMore: boolean } | undefined> {
  const column = sql.ref(COLUMNS[table]);
  const { rows } = await sql<{ period: number; key_id: string }>`select ${column} as period, key_id
    from ${sql.table(table)} where ${column} < ${sql.lit(before)}
    order by ${column}, key_id limit ${sql.lit(count)}`.execute(db);
  const last = rows.at(-1);
  if (!last) return undefined;
  const which = sql<SqlBool>`(${column}, key_id) <= (${sql.lit(Number(last.period))}, ${last.key_id})`;
  return { which, hasMore: rows.length === count };
}
