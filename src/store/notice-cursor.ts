import type { Kysely } from 'kysely';
import { latestTime } from './clock.ts';
import type { NoticeStateTable } from './tables.ts';
import type { Tables } from './tables.ts';

/** How far the store was looked through for notices; undefined if it never was. */
export function findNoticeState(db: Kysely<Tables>): Promise<NoticeStateTable | undefined> {
  return db.selectFrom('notice_state').selectAll().executeTakeFirst();
}

/**
 * The last entry of the audit log of which notices were made; undefined if nobody makes any. Whoever was not there for
 * so long, in milliseconds, does not count.
 */
export async function lastNoticed(db: Kysely<Tables>, forgottenMs: number): Promise<number | undefined> {
  const row = await findNoticeState(db);
  return row && Number(row.seen_at) > (await latestTime(db)) - forgottenMs ? Number(row.log_number) : undefined;
}
