import { type Kysely, type RawBuilder, sql, type SqlBool } from 'kysely';
import { type KeyUsage, USAGE, type UsageBounds, type UsageTotals, type UsedGrant } from '../keys/key/usage.ts';
import { OUTCOMES, type OutcomeCounts } from '../keys/usage/outcomes.ts';
import { PERIOD_MS, type PeriodUsage, type UsageRange } from '../keys/usage/periods.ts';
import { chunksOf } from './chunks.ts';
import { type DialectName, portOfStore } from './connection.ts';
import { jsonRowNumber, jsonRows, jsonRowsOfKeys, jsonRowText } from './json-rows.ts';
import { toNumber } from './rows.ts';
import type { Tables } from './tables.ts';

const HOURS_A_DAY = PERIOD_MS.DAY / PERIOD_MS.HOUR;
/** The counts of a row. */
const COUNTS = sql.join(OUTCOMES.map((outcome) => sql.ref(outcome)));
const SUMS = sql.join(OUTCOMES.map((outcome) => sql`cast(sum(${sql.ref(outcome)}) as bigint) as ${sql.ref(outcome)}`));

/** The tables of hours and of days. */
type PeriodTable = 'key_usage_hours' | 'key_usage_days';

/** The tables, each with the column that its rows are in the order of. */
const COLUMNS = { key_usage_hours: 'hour', key_usage_days: 'day' } as const satisfies Record<PeriodTable, string>;
const TABLES = Object.keys(COLUMNS) as PeriodTable[];

/** How many deleted keys are looked at, at once. */
const MAX_KEYS = 100;

/** How keys are used. */
export const usage = portOfStore({
  port: USAGE,
  read: ({ run }) => ({
    totals: (ids) => run((db) => findUsage(db, ids)),
    byPeriod: (id, range) => run((db) => findPeriodUsage(db, id, range)),
    grants: (ids) => run((db) => findUsedPermissions(db, ids)),
  }),
  write: ({ db, dialect }) => ({
    add: (added) => addUsage(db, dialect, added),
    condense: (bounds) => condenseUsage(db, bounds),
  }),
  empty: () => ({
    totals: async () => new Map(),
    byPeriod: async () => [],
    grants: async (ids) => new Map(ids.map((id) => [id, new Map()])),
  }),
  deleted: ({ db, dialect }, ids) => noteLeftovers(db, dialect, ids),
});

/** The totals of keys, by id; keys that were never used are left out. */
async function findUsage(db: Kysely<Tables>, ids: readonly string[]): Promise<Map<string, UsageTotals>> {
  const found = new Map<string, UsageTotals>();
  for (const chunk of chunksOf(ids)) {
    const rows = await db.selectFrom('key_usage').selectAll().where('key_id', 'in', chunk).execute();
    for (const { key_id: id, uses, last_used_at: last, previous_last_used_at: previous } of rows)
      found.set(id, { uses: Number(uses), lastUsedAt: toNumber(last), previousLastUsedAt: toNumber(previous) });
  }
  return found;
}

/** The permissions that keys have used and the roles that they granted, by id, each with the time of its last use. */
async function findUsedPermissions(
  db: Kysely<Tables>,
  ids: readonly string[],
): Promise<Map<string, Map<UsedGrant, number>>> {
  const found = new Map<string, Map<UsedGrant, number>>(ids.map((id) => [id, new Map()]));
  for (const chunk of chunksOf(ids)) {
    const rows = await db
      .selectFrom('used_grants')
      .selectAll()
      .where('key_id', 'in', chunk)
      .orderBy('key_id')
      .orderBy('permission')
      .execute();
    for (const { key_id: id, permission, last_used_at: at } of rows)
      found.get(id)?.set(permission as UsedGrant, Number(at));
  }
  return found;
}

/** Adds to the totals of keys, inside a write transaction. Keys that no longer exist are ignored. */
async function addUsage(db: Kysely<Tables>, dialect: DialectName, usage: readonly KeyUsage[]): Promise<void> {
  const totals = usage
    .filter(({ lastUsedAt }) => lastUsedAt !== null)
    .map(({ id, uses, lastUsedAt, previousLastUsedAt }) => [id, uses, lastUsedAt, previousLastUsedAt]);
  if (totals.length > 0)
    await sql`insert into key_usage (key_id, uses, last_used_at, previous_last_used_at)
      select ${jsonRowText(0)}, ${jsonRowNumber(1)}, ${jsonRowNumber(2)}, ${jsonRowNumber(3)}
      from ${jsonRowsOfKeys(dialect, totals)}
      on conflict (key_id) do update set uses = key_usage.uses + excluded.uses,
        last_used_at = ${latest('last_used_at')}, previous_last_used_at = ${latest('previous_last_used_at')}`.execute(
      db,
    );
  await addHours(db, dialect, usage);

  const grants = usage.flatMap(({ id, lastUsedAt, permissions }) =>
    permissions.map((permission) => [id, permission, lastUsedAt ?? 0]),
  );
  if (grants.length > 0)
    await sql`insert into used_grants (key_id, permission, last_used_at)
      select ${jsonRowText(0)}, ${jsonRowText(1)}, ${jsonRowNumber(2)} from ${jsonRowsOfKeys(dialect, grants)}
      on conflict (key_id, permission) do update set last_used_at = excluded.last_used_at
        where excluded.last_used_at > used_grants.last_used_at`.execute(db);
}

function latest(column: 'last_used_at' | 'previous_last_used_at'): RawBuilder<number> {
  const [added, stored] = [sql.ref(`excluded.${column}`), sql.ref(`key_usage.${column}`)];
  return sql`case when ${added} is null or ${stored} > ${added} then ${stored} else ${added} end`;
}

/** Adds to what is kept of hours, inside a write transaction. Keys that no longer exist are ignored. */
async function addHours(db: Kysely<Tables>, dialect: DialectName, usage: readonly KeyUsage[]): Promise<void> {
  const rows = usage.flatMap(({ id, hours }) =>
    hours.map((hour) => [id, hour.start / PERIOD_MS.HOUR, ...OUTCOMES.map((outcome) => hour[outcome])]),
  );
  if (rows.length === 0) return;
  const counts = sql.join(OUTCOMES.map((_, index) => jsonRowNumber(index + 2)));
  await sql`insert into key_usage_hours (hour, key_id, ${COUNTS})
    select ${jsonRowNumber(1)}, ${jsonRowText(0)}, ${counts} from ${jsonRowsOfKeys(dialect, rows)}
    on conflict (hour, key_id) do update set ${added('key_usage_hours')}`.execute(db);
}

async function findPeriodUsage(db: Kysely<Tables>, id: string, { by, from, to }: UsageRange): Promise<PeriodUsage[]> {
  // What a deleted key leaves is removed behind.
  const within = (column: 'hour' | 'day', length: number) => sql<SqlBool>`
    key_id = (select id from api_keys where id = ${id})
    and ${sql.ref(column)} >= ${sql.lit(from / length)} and ${sql.ref(column)} < ${sql.lit(to / length)}`;
  const hours = within('hour', PERIOD_MS.HOUR);
  const { rows } = await (
    by === 'HOUR'
      ? sql<PeriodRow>`select hour as period, ${COUNTS} from key_usage_hours where ${hours} order by hour`
      : sql<PeriodRow>`select period, ${SUMS} from (
          select day as period, ${COUNTS} from key_usage_days where ${within('day', PERIOD_MS.DAY)}
          union all
          select ${dayOf('hour')} as period, ${COUNTS} from key_usage_hours where ${hours}
        ) as known group by period order by period`
  ).execute(db);
  return rows.map(({ period, accepted, forbidden, limited, refused }) => ({
    start: Number(period) * PERIOD_MS[by],
    accepted: Number(accepted),
    forbidden: Number(forbidden),
    limited: Number(limited),
    refused: Number(refused),
  }));
}

interface PeriodRow extends OutcomeCounts {
  period: number;
}

/** The day of an hour. */
function dayOf(hour: string): RawBuilder<number> {
  return sql`(${sql.ref(hour)} / ${sql.lit(HOURS_A_DAY)})`;
}

/** Adds the counts of a row that is there already. */
function added(table: PeriodTable): RawBuilder<unknown> {
  return sql.join(
    OUTCOMES.map((outcome) => {
      const [stored, given] = [sql.ref(`${table}.${outcome}`), sql.ref(`excluded.${outcome}`)];
      return sql`${sql.ref(outcome)} = ${stored} + ${given}`;
    }),
  );
}

/** Remembers which of these keys, which were deleted, leave use by hours or days. */
async function noteLeftovers(db: Kysely<Tables>, dialect: DialectName, ids: readonly string[]): Promise<void> {
  const isUsed = sql.join(
    TABLES.map((table) => sql`exists (select 1 from ${sql.table(table)} where key_id = ${jsonRowText(0)})`),
    sql` or `,
  );
  const given = jsonRows(
    dialect,
    ids.map((id) => [id]),
  );
  await sql`insert into key_usage_leftovers (key_id) select ${jsonRowText(0)} from ${given}
    where ${isUsed} on conflict do nothing`.execute(db);
}

async function condenseUsage(db: Kysely<Tables>, { hoursFrom, daysFrom, rows }: UsageBounds): Promise<boolean> {
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
