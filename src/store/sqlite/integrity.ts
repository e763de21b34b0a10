import { sql } from 'kysely';
import type { Connection } from '../connection.ts';

/** What is wrong with an SQLite file as a whole; undefined for a sound one. It takes seconds for a million keys. */
export async function findDamage(file: Pick<Connection, 'run'>): Promise<string | undefined> {
  const { rows } = await file.run((db) => sql<{ integrity_check: string }>`pragma integrity_check(1)`.execute(db));
  const result = rows[0]?.integrity_check ?? 'it could not be checked';
  return result === 'ok' ? undefined : result;
}
