import { setTimeout as delay } from 'node:timers/promises';
import type Database from 'better-sqlite3';
import { type Kysely, sql } from 'kysely';
import { debug, millisecondsSince } from '../../keys/steps.ts';
import type { Tables } from '../tables.ts';
import { isLocked } from './sqlite-errors.ts';

/** How often a change tries to write itself into the file, and how long it waits in between. */
const [MAX_TRIES, WAIT_MS] = [100, 2];

/** What SQLite says of a checkpoint: how many pages its log had, and how many of them the file has now. */
interface Checkpoint {
  busy: number;
  log: number;
  checkpointed: number;
}

/**
 * Writes what was committed into the file itself, as far as nobody reads what was before. Another program that is just
 * doing so may have begun before the last change.
 */
export async function checkpoint(db: Kysely<Tables>): Promise<void> {
  const began = performance.now();
  let result: Checkpoint | undefined;
  let tries = 0;
  while (tries < MAX_TRIES) {
    [result] = (await sql<Checkpoint>`pragma wal_checkpoint(passive)`.execute(db)).rows;
    tries += 1;
    if (result?.busy !== 1) break;
    await delay(WAIT_MS);
  }
  debug('a checkpoint was made', () => ({ ...result, tries, durationMs: millisecondsSince(began) }));
}

/** Writes what was committed into the file. Returns whether that was possible for all of it. */
export function backfill(driver: Database.Database): boolean {
  try {
    const [result] = driver.pragma('wal_checkpoint(passive)') as Checkpoint[];
    debug('a checkpoint was made', () => ({ ...result }));
    return result?.log === result?.checkpointed;
  } catch (error) {
    return !isLocked(error); // What cannot be written now cannot be written later either.
  }
}
