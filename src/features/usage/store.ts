import { type Kysely, type RawBuilder, sql } from 'kysely';
import { hash } from 'node:crypto';
import { type KeyUse, type OutcomeCounts, OUTCOMES, PERIOD_MS } from '../../keys/key/index.ts';
import {
  type DialectName,
  isId,
  jsonRowId,
  jsonRowNumber,
  jsonRows,
  jsonRowsOf,
  portOfStore,
  type StoreOfFeature,
  type Tables,
} from '../../store/index.ts';
import { usageTables } from './tables.ts';
import { type PeriodUsage, USAGE, type UsageBounds, type UsageRange } from './usage.ts';
import { usedGrants } from './used-grants.ts';

const HOURS_A_DAY = PERIOD_MS.DAY / PERIOD_MS.HOUR;

/** The tables of past hours and days, each with the column that orders its rows. */
const PERIOD_COLUMNS = { key_usage_hours: 'hour', key_usage_days: 'day' } as const;
type PeriodTable = keyof typeof PERIOD_COLUMNS;

/** The outcome columns. */
const COUNTS = sql.join(OUTCOMES.map((outcome) => sql.ref(outcome)));
const SUMS = sql.join(OUTCOMES.map((outcome) => sql`cast(sum(${sql.ref(outcome)}) as bigint) as ${sql.ref(outcome)}`));

/** The outcomes of requests. */
const usage = portOfStore({
  port: USAGE,
  read: ({ run, connection: { dialect } }) => ({
    byPeriod: (id, range) => run((db) => findPeriodUsage(db, dialect, id, range)),
    ofAll: (range) => run((db) => findPeriodUsage(db, dialect, null, range)),
  }),
  write: ({ db, dialect }) => ({
    add: (added) => addUsage(db, dialect, added),
    condense: (bounds) => condenseUsage(db, dialect, bounds),
    forget: (ids, rows) => forgetUsage(db, dialect, ids, rows),
  }),
});

/** The tables and the ports of usage. */
export const usageStore: StoreOfFeature = { ...usageTables, ports: [usage, usedGrants] };

/** A key's number in the other tables, and the first and last hour with requests. */
interface KnownKey {
  number: number;
  first: number;
  hour: number;
}

/**
 * Adds to the counts of keys, inside a write transaction. Keys that no longer exist are ignored. A key's last hour has a
 * row of its own, which changes in place; the counts of past hours are written once.
 */
async function addUsage(db: Kysely<Tables>, dialect: DialectName, uses: readonly KeyUse[]): Promise<void> {
  const requested = uses.filter(({ hours }) => hours.length > 0);
  if (requested.length === 0) return;
  const known = await lockKeys(db, dialect, requested);
  const lasts: unknown[][] = [];
  const [over, past]: [string[][], number[][]] = [[], []];
  const ofAll = new Map<number, number[]>();
  for (const { id, hours } of requested) {
    const key = known.get(id);
    if (!key) continue;
    const numbers = hours.map(({ start }) => start / PERIOD_MS.HOUR);
    const [first, last] = [Math.min(key.first, ...numbers), Math.max(key.hour, ...numbers)];
    if (last > key.hour) over.push([id]);
    let present = OUTCOMES.map(() => 0);
    for (const [index, hour] of numbers.entries()) {
      const counts = OUTCOMES.map((outcome) => hours[index]![outcome]);
      ofAll.set(
        hour,
        counts.map((count, outcome) => count + (ofAll.get(hour)?.[outcome] ?? 0)),
      );
      if (hour === last) present = counts;
      else past.push([hour, key.number, ...counts]);
    }
    lasts.push([id, first, last, ...present]);
  }
  const addHours = (hours: RawBuilder<unknown>) =>
    sql`insert into key_usage_hours (hour, key_number, ${COUNTS}) ${hours}
      on conflict (hour, key_number) do update set ${added('key_usage_hours')}`.execute(db);
  if (over.length > 0)
    await addHours(sql`select hour, number, ${COUNTS} from key_usage
      where key_id in (select ${jsonRowId(dialect, 0)} from ${jsonRows(dialect, over)}) order by number`);
  if (lasts.length > 0)
    await sql`update key_usage set first_hour = ${jsonRowNumber(1)}, hour = ${jsonRowNumber(2)}, ${sql.join(
      OUTCOMES.map((outcome, index) => {
        const [column, stored] = [sql.ref(outcome), sql.ref(`key_usage.${outcome}`)];
        const isSameHour = sql`key_usage.hour = ${jsonRowNumber(2)}`;
        return sql`${column} = case when ${isSameHour} then ${stored} else 0 end + ${jsonRowNumber(3 + index)}`;
      }),
    )}
      from ${jsonRows(dialect, lasts)} where key_id = ${jsonRowId(dialect, 0)}`.execute(db);
  const addRows = (rows: readonly number[][]) => {
    const counts = sql.join(OUTCOMES.map((_, index) => jsonRowNumber(index + 2)));
    return addHours(sql`select ${jsonRowNumber(0)}, ${jsonRowNumber(1)}, ${counts} from ${jsonRows(dialect, rows)}
      where true`);
  };
  if (past.length > 0) await addRows(past);
  // Comes last, since every process changes these rows: others wait no longer than until the end of the transaction.
  if (ofAll.size > 0) await addRows(Array.from(ofAll, ([hour, counts]) => [hour, ALL_KEYS, ...counts]));
}

/** Adds counts to an existing row. */
function added(table: PeriodTable): RawBuilder<unknown> {
  return sql.join(
    OUTCOMES.map((outcome) => {
      const [stored, given] = [sql.ref(`${table}.${outcome}`), sql.ref(`excluded.${outcome}`)];
      return sql`${sql.ref(outcome)} = ${stored} + ${given}`;
    }),
  );
}

/**
 * The keys of this usage that exist, by id. In PostgreSQL their rows are locked, before other usage rows and in the
 * order of ids, so that processes neither deadlock nor block changes of keys.
 */
async function lockKeys(
  db: Kysely<Tables>,
  dialect: DialectName,
  uses: readonly KeyUse[],
): Promise<Map<string, KnownKey>> {
  const known = new Map<string, KnownKey>();
  const lock = async (ids: readonly string[]) => {
    const { rows } = await sql<{ key_id: string; number: number; first_hour: number; hour: number }>`
      select key_id, number, first_hour, hour from key_usage
      where key_id in (select ${jsonRowId(dialect, 0)} from ${jsonRowsOf(dialect, ids)})
      order by key_id ${dialect === 'postgres' ? sql`for update` : sql``}`.execute(db);
    for (const { key_id: id, number, first_hour: first, hour } of rows) known.set(id, { number, first, hour });
  };
  const ids = uses.map(({ id }) => id);
  await lock(ids);
  if (known.size === ids.length) return known;
  const { rows } = await sql<{ id: string }>`select id from api_keys
    where id in (select ${jsonRowId(dialect, 0)} from ${jsonRowsOf(
      dialect,
      ids.filter((id) => !known.has(id)),
    )})`.execute(db);
  const isKey = new Set(rows.map(({ id }) => id));
  let others = uses.filter(({ id }) => isKey.has(id)).toSorted((one, other) => (one.id < other.id ? -1 : 1));
  // If another key has the number, the next one is tried.
  for (let tried = 0; others.length > 0; tried += 1) {
    const inserted = others.map(({ id, hours }) => {
      const start = Math.min(...hours.map((hour) => hour.start));
      return [id, (numberOf(id) + tried) % NUMBERS, Math.floor(start / PERIOD_MS.HOUR)];
    });
    await sql`insert into key_usage (key_id, number, first_hour, hour, ${COUNTS})
      select ${jsonRowId(dialect, 0)}, ${jsonRowNumber(1)}, ${jsonRowNumber(2)}, ${jsonRowNumber(2)}, 0, 0, 0, 0
      from ${jsonRows(dialect, inserted)} where true on conflict do nothing`.execute(db);
    await lock(others.map(({ id }) => id));
    others = others.filter(({ id }) => !known.has(id));
  }
  return known;
}

/** The number that stands for all keys together. No key has it. */
const ALL_KEYS = -1;
/** The numbers of keys, which fit an integer of PostgreSQL. */
const NUMBERS = 2 ** 31;

/** A short number for a key, in the order of ids, so that neighbours share pages. */
function numberOf(id: string): number {
  const digits = /^[0-9a-f]{8}/.exec(id)?.[0] ?? hash('sha256', id).slice(0, 8);
  return Number.parseInt(digits, 16) % NUMBERS;
}

/** The outcomes of the requests of one key, or of all. */
async function findPeriodUsage(
  db: Kysely<Tables>,
  dialect: DialectName,
  id: string | null,
  { by, from, to }: UsageRange,
): Promise<PeriodUsage[]> {
  const key = id === null ? { number: ALL_KEYS, first: 0 } : isId(dialect, id) ? await findNumber(db, id) : undefined;
  if (!key) return [];
  // Row by row, since rows of all other keys are in between.
  const lookUp = async (table: PeriodTable, length: number, asPeriod: RawBuilder<unknown>) => {
    const column = sql.ref(`${table}.${PERIOD_COLUMNS[table]}`);
    const first = Math.max(from / length, Math.floor((key.first * PERIOD_MS.HOUR) / length), await oldestOf(db, table));
    const periods = Array.from({ length: Math.max(to / length - first, 0) }, (_, index) => first + index);
    return sql`select ${asPeriod} as period, ${COUNTS}
      from ${jsonRowsOf(dialect, periods)} cross join ${sql.table(table)}
      where ${column} = ${jsonRowNumber(0)} and key_number = ${sql.lit(key.number)}`;
  };
  const asPeriod = by === 'HOUR' ? sql.ref('hour') : sql`hour / ${sql.lit(HOURS_A_DAY)}`;
  const tables = [
    // The last hour of a key has a row of its own.
    ...(id === null
      ? []
      : [
          sql`select ${asPeriod} as period, ${COUNTS} from key_usage where key_id = ${id}
            and hour >= ${sql.lit(from / PERIOD_MS.HOUR)} and hour < ${sql.lit(to / PERIOD_MS.HOUR)}`,
        ]),
    await lookUp('key_usage_hours', PERIOD_MS.HOUR, asPeriod),
    ...(by === 'DAY' ? [await lookUp('key_usage_days', PERIOD_MS.DAY, sql.ref('day'))] : []),
  ];
  const { rows } = await sql<PeriodRow>`select period, ${SUMS} from (${sql.join(tables, sql` union all `)}) as known
    group by period order by period`.execute(db);
  return rows.map(({ period, accepted, forbidden, limited, refused }) => ({
    start: Number(period) * PERIOD_MS[by],
    accepted: Number(accepted),
    forbidden: Number(forbidden),
    limited: Number(limited),
    refused: Number(refused),
  }));
}

/** A key's usage number and its first hour. Rows of deleted keys are skipped. */
async function findNumber(db: Kysely<Tables>, id: string): Promise<{ number: number; first: number } | undefined> {
  const { rows } = await sql<{ number: number; first: number }>`select number, first_hour as first
    from key_usage where key_id = (select id from api_keys where id = ${id})`.execute(db);
  return rows[0];
}

interface PeriodRow extends OutcomeCounts {
  period: number;
}

/** The first hour, or day, in a table; infinity if it is empty. */
async function oldestOf(db: Kysely<Tables>, table: PeriodTable): Promise<number> {
  const { rows } = await sql<{ oldest: number | null }>`select min(${sql.ref(PERIOD_COLUMNS[table])}) as oldest
    from ${sql.table(table)}`.execute(db);
  return rows[0]!.oldest ?? Number.POSITIVE_INFINITY;
}

async function condenseUsage(
  db: Kysely<Tables>,
  dialect: DialectName,
  { hoursFrom, daysFrom, rows }: UsageBounds,
): Promise<boolean> {
  if (dialect === 'postgres') {
    const lock = sql<{ isFree: boolean }>`select pg_try_advisory_xact_lock(
      hashtextextended('svc-api usage ' || current_schema(), 0)) as "isFree"`;
    // Another server is doing it.
    if (!(await lock.execute(db)).rows[0]!.isFree) return true;
  }
  let left = rows;
  while (left > 0) {
    const condensed = await condenseDay(db, dialect, hoursFrom / PERIOD_MS.HOUR, left);
    if (condensed === undefined) break;
    left -= condensed;
  }
  const { rows: days } = await sql<{ day: number; number: number }>`select day, key_number as number from key_usage_days
    where day < ${sql.lit(daysFrom / PERIOD_MS.DAY)} order by day, key_number limit ${sql.lit(rows)}`.execute(db);
  const last = days.at(-1);
  if (last)
    await sql`delete from key_usage_days
      where (day, key_number) <= (${sql.lit(last.day)}, ${sql.lit(last.number)})`.execute(db);
  return left > 0 && days.length < rows;
}

/**
 * Merges the oldest day with hours from before a time, for some keys: whole days, so that each row is written once.
 * @returns the number of hours; undefined if there is none
 */
async function condenseDay(
  db: Kysely<Tables>,
  dialect: DialectName,
  before: number,
  rows: number,
): Promise<number | undefined> {
  const oldest = await oldestOf(db, 'key_usage_hours');
  if (oldest >= before) return undefined;
  const day = Math.floor(oldest / HOURS_A_DAY);
  const ofDay = Array.from({ length: HOURS_A_DAY }, (_, index) => day * HOURS_A_DAY + index);
  const { rows: used } = await sql<{ hour: number }>`select ${jsonRowNumber(0)} as hour
    from ${jsonRowsOf(
      dialect,
      ofDay.filter((hour) => hour < before),
    )}
    where exists (select 1 from key_usage_hours where hour = ${jsonRowNumber(0)})`.execute(db);
  const hours = used.map(({ hour }) => Number(hour));
  const keys = Math.max(Math.floor(rows / hours.length), 1);
  const { rows: bounds } = await sql<{ last: number | null }>`select min(last) as last from (
    select (select key_number from key_usage_hours where hour = ${jsonRowNumber(0)}
      order by key_number limit 1 offset ${sql.lit(keys - 1)}) as last
    from ${jsonRowsOf(dialect, hours)}) as bounds`.execute(db);
  const last = bounds[0]!.last;
  const which = sql`hour in (${sql.join(hours.map((hour) => sql.lit(hour)))})
    and key_number <= ${sql.lit(last ?? NUMBERS)}`;
  await sql`insert into key_usage_days (day, key_number, ${COUNTS})
    select ${sql.lit(day)}, key_number, ${SUMS} from key_usage_hours where ${which}
    group by key_number order by key_number
    on conflict (day, key_number) do update set ${added('key_usage_days')}`.execute(db);
  const { numAffectedRows } = await sql`delete from key_usage_hours where ${which}`.execute(db);
  return Number(numAffectedRows);
}

/** Removes the usage of deleted keys, until about this many rows were searched. @returns true if nothing is left */
async function forgetUsage(
  db: Kysely<Tables>,
  dialect: DialectName,
  ids: readonly string[],
  rows: number,
): Promise<boolean> {
  const { rows: keys } = await sql<KnownKey & { id: string }>`
    select key_id as id, number, first_hour as first, hour from key_usage
    where key_id in (select ${jsonRowId(dialect, 0)} from ${jsonRowsOf(dialect, ids)})
      and not exists (select 1 from api_keys where id = key_id)
    order by key_id ${dialect === 'postgres' ? sql`for update` : sql``}`.execute(db);
  const oldest = {
    key_usage_hours: await oldestOf(db, 'key_usage_hours'),
    key_usage_days: await oldestOf(db, 'key_usage_days'),
  };
  const gone: string[] = [];
  const periods: Record<PeriodTable, number[][]> = { key_usage_hours: [], key_usage_days: [] };
  const add = (table: PeriodTable, number: number, from: number, to: number) => {
    for (let period = Math.max(from, oldest[table]); period <= to; period += 1) periods[table].push([period, number]);
  };
  for (const { id, number, first, hour } of keys) {
    if (periods.key_usage_hours.length + periods.key_usage_days.length >= rows) break;
    gone.push(id);
    add('key_usage_hours', number, first, hour);
    add('key_usage_days', number, Math.floor(first / HOURS_A_DAY), Math.floor(hour / HOURS_A_DAY));
  }
  for (const table of ['key_usage_hours', 'key_usage_days'] as const)
    if (periods[table].length > 0)
      await sql`delete from ${sql.table(table)} where (${sql.ref(PERIOD_COLUMNS[table])}, key_number) in
        (select ${jsonRowNumber(0)}, ${jsonRowNumber(1)} from ${jsonRows(dialect, periods[table])})`.execute(db);
  if (gone.length > 0)
    await sql`delete from key_usage
      where key_id in (select ${jsonRowId(dialect, 0)} from ${jsonRowsOf(dialect, gone)})`.execute(db);
  return gone.length === keys.length;
}
