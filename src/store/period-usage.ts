import { type Kysely, type RawBuilder, sql, type SqlBool } from 'kysely';
import type { KeyUsage } from '../keys/key/usage.ts';
import type { UsageBounds } from '../keys/repository.ts';
import { OUTCOMES, type OutcomeCounts } from '../keys/usage/outcomes.ts';
import { PERIOD_MS, type PeriodUsage, type UsageRange } from '../keys/usage/periods.ts';
import type { DialectName } from './connection.ts';
import { givenNumber, givenRowsOfKeys, givenText } from './given-rows.ts';
import type { Tables } from './tables.ts';

const HOURS_A_DAY = PERIOD_MS.DAY / PERIOD_MS.HOUR;
const COUNTS = sql.join(OUTCOMES.map((outcome) => sql.ref(outcome)));
const SUMS = sql.join(OUTCOMES.map((outcome) => sql`cast(sum(${sql.ref(outcome)}) as bigint) as ${sql.ref(outcome)}`));

/** The tables, each with the column that its rows are in the order of. */
const TABLES = { key_usage_hours: 'hour', key_usage_days: 'day' } as const;

/** Adds to what is kept of hours, inside a write transaction. Keys that no longer exist are ignored. */
export async function addHours(db: Kysely<Tables>, dialect: DialectName, usage: readonly KeyUsage[]): Promise<void> {
  const rows = usage.flatMap(({ id, hours }) =>
    hours.map((hour) => [id, hour.start / PERIOD_MS.HOUR, ...OUTCOMES.map((outcome) => hour[outcome])]),
  );
  if (rows.length === 0) return;
  const counts = sql.join(OUTCOMES.map((_, index) => givenNumber(index + 2)));
  await sql`insert into key_usage_hours (hour, key_id, ${COUNTS})
    select ${givenNumber(1)}, ${givenText(0)}, ${counts} from ${givenRowsOfKeys(dialect, rows)}
    on conflict (hour, key_id) do update set ${added('key_usage_hours')}`.execute(db);
}

/** See `KeyRepository.findPeriodUsage`. */
export async function findPeriodUsage(
  db: Kysely<Tables>,
  id: string,
  { by, from, to }: UsageRange,
): Promise<PeriodUsage[]> {
  const within = (column: 'hour' | 'day', length: number) => sql<SqlBool>`key_id = ${id}
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
  return !hours?.hasMore && !days?.hasMore;
}

/** The oldest rows from before a period, if there are any, and whether there are more of them. */
async function findOldest(
  db: Kysely<Tables>,
  table: keyof typeof TABLES,
  before: number,
  count: number,
): Promise<{ which: RawBuilder<SqlBool>; hasMore: boolean } | undefined> {
  const column = sql.ref(TABLES[table]);
  const { rows } = await sql<{ period: number; key_id: string }>`select ${column} as period, key_id
    from ${sql.table(table)} where ${column} < ${sql.lit(before)}
    order by ${column}, key_id limit ${sql.lit(count)}`.execute(db);
  const last = rows.at(-1);
  if (!last) return undefined;
  const which = sql<SqlBool>`(${column}, key_id) <= (${sql.lit(Number(last.period))}, ${last.key_id})`;
  return { which, hasMore: rows.length === count };
}

function dayOf(hour: string): RawBuilder<number> {
  return sql`(${sql.ref(hour)} / ${sql.lit(HOURS_A_DAY)})`;
}

/** Adds the counts of a row that is there already. */
function added(table: keyof typeof TABLES): RawBuilder<unknown> {
  return sql.join(
    OUTCOMES.map((outcome) => {
      const [stored, given] = [sql.ref(`${table}.${outcome}`), sql.ref(`excluded.${outcome}`)];
      return sql`${sql.ref(outcome)} = ${stored} + ${given}`;
    }),
  );
}
