import { type Kysely, type RawBuilder, sql, type SqlBool } from 'kysely';
import type { KeyUsage } from '../keys/key/usage.ts';
import { OUTCOMES, type OutcomeCounts } from '../keys/usage/outcomes.ts';
import { PERIOD_MS, type PeriodUsage, type UsageRange } from '../keys/usage/periods.ts';
import type { DialectName } from './connection.ts';
import { givenNumber, givenRowsOfKeys, givenText } from './given-rows.ts';
import type { Tables } from './tables.ts';

const HOURS_A_DAY = PERIOD_MS.DAY / PERIOD_MS.HOUR;
/** The counts of a row. */
export const COUNTS = sql.join(OUTCOMES.map((outcome) => sql.ref(outcome)));
export const SUMS = sql.join(
  OUTCOMES.map((outcome) => sql`cast(sum(${sql.ref(outcome)}) as bigint) as ${sql.ref(outcome)}`),
);

/** The tables of hours and of days. */
export type PeriodTable = 'key_usage_hours' | 'key_usage_days';

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
export function dayOf(hour: string): RawBuilder<number> {
  return sql`(${sql.ref(hour)} / ${sql.lit(HOURS_A_DAY)})`;
}

/** Adds the counts of a row that is there already. */
export function added(table: PeriodTable): RawBuilder<unknown> {
  return sql.join(
    OUTCOMES.map((outcome) => {
      const [stored, given] = [sql.ref(`${table}.${outcome}`), sql.ref(`excluded.${outcome}`)];
      return sql`${sql.ref(outcome)} = ${stored} + ${given}`;
    }),
  );
}
