import type { Kysely } from 'kysely';
import type { Tables } from './tables.ts';

/** How much later a time is than the one that is remembered, at least: most writes then leave this row alone. */
const MIN_STEP_MS = 1000;

/** The latest time that was remembered, in milliseconds since 1970; 0 if there is none. */
export async function latestTime(db: Kysely<Tables>): Promise<number> {
  return Number((await db.selectFrom('clock').select('latest').executeTakeFirst())?.latest ?? 0);
}

/** See `KeyWriter.rememberTime`. */
export async function rememberTime(db: Kysely<Tables>, now: number): Promise<void> {
  const latest = await latestTime(db);
  if (now < latest + MIN_STEP_MS) return;
  await db
    .insertInto('clock')
    .values({ one: 1, latest: now })
    .onConflict((conflict) => conflict.column('one').doUpdateSet({ latest: now }))
    .execute();
}
