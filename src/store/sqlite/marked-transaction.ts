import { type Kysely, sql } from 'kysely';
import type { Tables } from '../tables.ts';
import { isLocked, sqliteError } from './sqlite-errors.ts';

interface MarkedWork<Result> {
  work: (db: Kysely<Tables>) => Promise<Result>;
  /** Marks a change, in its transaction, before it is committed. @throws FileReplaced */
  mark: (transaction: Kysely<Tables>) => Promise<void>;
  location: string;
}

/**
 * Runs work in a transaction that marks the change, if it makes one.
 * @returns what the work returns, and how many rows were changed
 * @throws what the work throws; a KeysError where the change may have been made, and must not be made again
 */
export async function runMarked<Result>(
  writer: Kysely<Tables>,
  { work, mark, location }: MarkedWork<Result>,
): Promise<{ result: Result; changes: number }> {
  let isDecided = false;
  try {
    return await writer.transaction().execute(async (transaction) => {
      const before = await changesBy(transaction);
      const result = await work(transaction);
      const changes = (await changesBy(transaction)) - before;
      if (changes > 0) await mark(transaction);
      isDecided = true;
      return { result, changes };
    });
  } catch (error) {
    throw isDecided && !isLocked(error) ? sqliteError(error, location) : error;
  }
}

/** How many rows a connection has changed. */
async function changesBy(db: Kysely<Tables>): Promise<number> {
  const { rows } = await sql<{ changes: number }>`select total_changes() as changes`.execute(db);
  return rows[0]!.changes;
}
