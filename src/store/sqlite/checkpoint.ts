import { setTimeout as delay } from 'node:timers/promises';
import type Database from 'better-sqlite3';
import { type Kysely, sql } from 'kysely';
import type { Tables } from '../tables.ts';
import { isLocked } from './sqlite-errors.ts';

/** How often a change tries to write itself into the file, and how long it waits in between. */
const [MAX_TRIES, WAIT_MS] = [100, 2];

/**
 * Writes what was committed into the file itself, as far as nobody reads what was before. Another program that is just
 * doing so may have begun before the last change.
 */
export async function checkpoint(db: Kysely<Tables>): Promise<void> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const { rows } = await sql<{ busy: number }>`pragma wal_checkpoint(passive)`.execute(db);
    if (rows[0]?.busy !== 1) return;
    await delay(WAIT_MS);
  }
}

/** Writes what was committed into the file. Returns whether that was possible for all of it. */
export function backfill(driver: Database.Database): boolean {
  try {
    const [result] = driver.pragma('wal_checkpoint(passive)') as { log: number; checkpointed: number }[];
    return result?.log === result?.checkpointed;
  } catch (error) {
    return !isLocked(error); // What cannot be written now cannot be written later either.
  }
}
