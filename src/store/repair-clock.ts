import type { Kysely } from 'kysely';
import { sql } from 'kysely';
import { auditChange, type AuditDraft, type AuditEntry } from '../keys/audit/index.ts';
import { operatorName } from '../keys/authorization/index.ts';
import { formatTime, LIMIT_SECONDS, MAX_BACK_MS, UNIT_MS } from '../keys/basics/index.ts';
import type { StoredKey } from '../keys/key/index.ts';
import { appendToAuditLog, latestTime, plausibleUntil, readAuditKey, setLatestTime } from './audit-log.ts';
import { appendDueOf } from './imports.ts';
import { updateKeys } from './key-repository.ts';
import { openConnection } from './open.ts';
import { chunksOf, readAuditEntry, readStoredKey } from './rows.ts';
import type { Tables } from './tables.ts';
import { added, COUNTS, PERIOD_COLUMNS, type PeriodTable, SUMS } from './usage.ts';

/** A key with times that were written while the clock was ahead, and what they become. */
export interface KeyAtWrongTime {
  before: StoredKey;
  after: StoredKey;
}

/** What was written while the clock was ahead. Times are milliseconds since 1970. */
export interface ClockRepair {
  /** Where the store is. */
  store: string;
  /** The time by the clock that the store goes by. */
  now: number;
  /** The latest time that the store remembers. */
  latest: number;
  /** By how much the latest time of all is ahead of the clock: times that are later move back by that. */
  aheadMs: number;
  /** Whether there is something to repair: something is ahead, or the clock is taken to be wrong and is not. */
  isNeeded: boolean;
  /** The entries of the audit log, which stay as they are. */
  entries: readonly AuditEntry[];
  keys: readonly KeyAtWrongTime[];
}

interface RepairOptions {
  database: string | undefined;
  env: NodeJS.ProcessEnv;
  /** See `OpenStoreOptions`. */
  busyTimeoutMs: number;
  /** Whether to do it; nothing is changed otherwise. */
  agree: (repair: ClockRepair) => Promise<boolean>;
}

/**
 * Moves back what was written while the clock was ahead, as if the last of it had been written now, and remembers the
 * time of the clock, which must be right. Running servers follow.
 * @returns what was found, and whether it was repaired
 * @throws KeysError STORE_…; what `agree` throws
 */
export async function repairClock({
  database,
  env,
  busyTimeoutMs,
  agree,
}: RepairOptions): Promise<{ repair: ClockRepair; isRepaired: boolean }> {
  const auditKey = readAuditKey(env);
  const connection = await openConnection({
    ...(database !== undefined && { database }),
    env,
    busyTimeoutMs,
    mustExist: true,
  });
  try {
    const find = async (db: Kysely<Tables>) => ({
      store: connection.location,
      ...(await findWrongTimes(db, connection.time())),
    });
    const found = await connection.run(find);
    if (!found.isNeeded || !(await agree(found))) return { repair: found, isRepaired: false };
    const repair = await connection.write(async (db, keysChanged) => {
      const current = await find(db);
      const ids = current.keys.map(({ before }) => before.id);
      keysChanged(ids);
      await appendDueOf({ db, dialect: connection.dialect, auditKey, keysChanged }, ids);
      await updateKeys(db, connection.dialect, current.keys);
      if (current.aheadMs > 0) await moveTimes(db, current);
      await appendToAuditLog(db, connection.dialect, entriesOf(current), auditKey);
      await setLatestTime(db, current.now);
      return current;
    });
    return { repair, isRepaired: true };
  } finally {
    await connection.close();
  }
}

async function findWrongTimes(db: Kysely<Tables>, now: number): Promise<Omit<ClockRepair, 'store'>> {
  const latest = await latestTime(db);
  const repaired = await db
    .selectFrom('audit_log')
    .select((row) => row.fn.max('number').as('number'))
    .where('action', '=', 'CLOCK_REPAIR' satisfies AuditEntry['action'])
    .executeTakeFirst();
  const rows = await db
    .selectFrom('audit_log')
    .selectAll()
    .where('number', '>', Number(repaired?.number ?? 0))
    .where('at', '>', now + MAX_BACK_MS)
    .orderBy('number')
    .execute();
  const entries = rows.map(readAuditEntry);
  const newest = entries.reduce((time, { at }) => Math.max(time, at), latest);
  if (newest <= now + MAX_BACK_MS) {
    const isNeeded = latest > 0 && now > (await plausibleUntil(db, latest));
    return { now, latest, aheadMs: 0, isNeeded, entries, keys: [] };
  }
  const aheadMs = newest - now;
  return { now, latest, aheadMs, isNeeded: true, entries, keys: await findKeys(db, entries, { now, aheadMs }) };
}

/** What sets when a key expires by the clock. A file that is imported has the time itself. */
const SETS_EXPIRY: ReadonlySet<AuditEntry['action']> = new Set(['CREATE', 'UPDATE']);

async function findKeys(
  db: Kysely<Tables>,
  entries: readonly AuditEntry[],
  { now, aheadMs }: { now: number; aheadMs: number },
): Promise<KeyAtWrongTime[]> {
  const limit = now + MAX_BACK_MS;
  const expiries = new Map<string, unknown>();
  const rotated = new Set<string>();
  for (const { apiKey: key, action, after } of entries) {
    if (!key || !after) continue;
    if ('expiresAt' in after && SETS_EXPIRY.has(action)) expiries.set(key.id, after['expiresAt']);
    if ('rotation' in after) rotated.add(key.id);
  }
  const columns = ['created_at', 'disabled_at', 'rotated_at'] as const;
  const rows = await db
    .selectFrom('api_keys')
    .selectAll()
    .where((row) => row.or(columns.map((column) => row(column, '>', limit))))
    .execute();
  const found = new Map(rows.map((row) => [row.id, row]));
  for (const ids of chunksOf([...expiries.keys(), ...rotated].filter((id) => !found.has(id))))
    for (const row of await db.selectFrom('api_keys').selectAll().where('id', 'in', ids).execute())
      found.set(row.id, row);
  const earlier = <Time extends number | null>(time: Time) => (time === null ? time : ((time - aheadMs) as Time));
  const right = <Time extends number | null>(time: Time) => (time !== null && time > limit ? earlier(time) : time);
  return [...found.values()].map(readStoredKey).flatMap((before): KeyAtWrongTime[] => {
    if (before.damaged) return [];
    const { id, rotation } = before;
    const after = {
      ...before,
      createdAt: right(before.createdAt),
      disabledAt: right(before.disabledAt),
      expiresAt: expiries.get(id) === formatTime(before.expiresAt) ? earlier(before.expiresAt) : before.expiresAt,
      rotation: rotation && {
        ...rotation,
        startedAt: right(rotation.startedAt),
        previousEndsAt: rotated.has(id) ? earlier(rotation.previousEndsAt) : rotation.previousEndsAt,
      },
    };
    return JSON.stringify(before) === JSON.stringify(after) ? [] : [{ before, after }];
  });
}

/** One for each key, and one for the repair. */
function entriesOf({ now, latest, aheadMs, entries, keys }: ClockRepair): AuditDraft[] {
  const entry = { at: now, actor: { kind: 'CLI', id: null, name: operatorName() } } as const;
  const changes = keys.map(({ before, after }): AuditDraft => {
    const changed = auditChange(before, after);
    const created = (key: StoredKey) =>
      before.createdAt === after.createdAt ? {} : { createdAt: formatTime(key.createdAt) };
    return {
      ...entry,
      action: 'UPDATE',
      apiKey: { id: after.id, name: after.name },
      before: { ...changed.before, ...created(before) },
      after: { ...changed.after, ...created(after) },
    };
  });
  const repaired = {
    latest: formatTime(now),
    entries: entries.length === 0 ? null : { first: entries[0]!.number, last: entries.at(-1)!.number },
  };
  return [
    ...changes,
    {
      ...entry,
      action: 'CLOCK_REPAIR',
      apiKey: null,
      before: { latest: formatTime(Math.max(latest, now + aheadMs)) },
      after: repaired,
    },
  ];
}

/** Times beside those of keys. */
const TIMES = {
  key_usage: ['last_used_at', 'previous_last_used_at'],
  used_grants: ['last_used_at'],
  rotated_secrets: ['rotated_at'],
  key_effects: ['at'],
  notice_state: ['seen_at', 'leased_until', 'failed_at', 'delivered_at'],
  notice_outbox: ['created_at', 'next_at'],
} as const satisfies { [Table in keyof Tables]?: readonly (keyof Tables[Table])[] };

async function moveTimes(db: Kysely<Tables>, { now, aheadMs }: Pick<ClockRepair, 'now' | 'aheadMs'>): Promise<void> {
  const limit = now + MAX_BACK_MS;
  for (const [table, columns] of Object.entries(TIMES))
    for (const column of columns)
      await sql`update ${sql.table(table)} set ${sql.ref(column)} = ${sql.ref(column)} - ${sql.lit(aheadMs)}
        where ${sql.ref(column)} > ${sql.lit(limit)}`.execute(db);
  for (const [unit, seconds] of Object.entries(LIMIT_SECONDS))
    await db
      .updateTable('limit_states')
      .set((row) => ({ unused_at: sql`${row.ref('unused_at')} - ${sql.lit(aheadMs * 1000)}` }))
      .where((row) => row.or([row('unit', '=', unit), row('unit', 'like', `${unit} %`)]))
      .where('unused_at', '>', (limit + seconds * 1000) * 1000)
      .execute();
  const hour = Math.floor(now / UNIT_MS.h);
  for (const column of ['hour', 'first_hour'] as const)
    await db
      .updateTable('key_usage')
      .set({ [column]: hour })
      .where(column, '>', hour)
      .execute();
  await moveUsage(db, 'key_usage_hours', hour);
  await moveUsage(db, 'key_usage_days', Math.floor(now / UNIT_MS.d));
  const state = await db.selectFrom('notice_state').select('endings').executeTakeFirst();
  const until = state && (JSON.parse(state.endings) as { until: number }).until;
  if (until !== undefined && until > limit)
    await db
      .updateTable('notice_state')
      .set({ endings: JSON.stringify({ until: now }) })
      .execute();
  await db.deleteFrom('sessions').where('started_at', '>', limit).execute();
  await db.deleteFrom('consent_requests').where('created_at', '>', limit).execute();
}

/** Counts what was counted in later periods in the present one. */
async function moveUsage(db: Kysely<Tables>, table: PeriodTable, present: number): Promise<void> {
  const [name, period] = [sql.table(table), sql.ref(PERIOD_COLUMNS[table])];
  await sql`insert into ${name} (${period}, key_number, ${COUNTS})
    select ${sql.lit(present)}, key_number, ${SUMS} from ${name} where ${period} > ${sql.lit(present)}
    group by key_number on conflict (${period}, key_number) do update set ${added(table)}`.execute(db);
  await sql`delete from ${name} where ${period} > ${sql.lit(present)}`.execute(db);
}
