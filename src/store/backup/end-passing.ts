import type { Connection } from '../connection.ts';
import { PASSING_TABLES } from '../tables.ts';

/** Removes from a copy of a store what was under way: imports, requests of applications, and sessions. */
export async function endPassing(file: Connection): Promise<void> {
  await file.write(async (db) => {
    for (const table of PASSING_TABLES) await db.deleteFrom(table).execute();
  });
}
