import { type Kysely, sql } from 'kysely';
import type { DialectName } from '../connection.ts';
import type { Tables } from '../tables.ts';

/**
 * A text that changes with every change of a key, whoever makes it. It tells a process that sees the file change
 * whether keys were changed, or only activity was recorded. PostgreSQL sends notifications instead.
 */
export async function createKeyState(db: Kysely<Tables>, dialect: DialectName): Promise<void> {
  if (dialect === 'postgres') return;
  await sql`create table key_state (one integer primary key check (one = 1), state text not null)`.execute(db);
  await sql`insert into key_state values (1, hex(randomblob(8)))`.execute(db);
  for (const change of ['insert', 'update', 'delete']) {
    await sql
      .raw(
        `create trigger key_state_after_${change} after ${change} on api_keys ` +
          'begin update key_state set state = hex(randomblob(8)); end',
      )
      .execute(db);
  }
}
