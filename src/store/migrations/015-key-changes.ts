import { type Kysely, sql } from 'kysely';
import type { DialectName } from '../connection.ts';
import type { Tables } from '../tables.ts';
import { announceChangedKeys } from './postgres-triggers.ts';

/** How many changes are kept. */
const KEPT = 4096;

/** The keys that have one of these unique values, which a statement may be about to replace (`insert or replace`). */
const REPLACED = `id = new.id or name = new.name or public_id = new.public_id or digest = new.digest
  or previous_digest = new.previous_digest`;

/**
 * Which keys were created, changed or deleted last, whoever did it. A change is known by its number and a random mark:
 * where the mark is another, or gone, it is not known what was changed since. PostgreSQL sends notifications instead.
 */
export async function createKeyChanges(db: Kysely<Tables>, dialect: DialectName): Promise<void> {
  if (dialect === 'postgres') return announceChangedKeys(db);
  await sql`create table key_changes (
    number integer primary key,
    key_id text not null,
    mark text not null default (hex(randomblob(8)))
  )`.execute(db);
  await sql`insert into key_changes (key_id) values ('')`.execute(db);
  const triggers = [
    // A new key, too: a file that was put in the place of this one may lack it.
    `key_changes_before_insert before insert on api_keys
      begin insert into key_changes (key_id) select id from api_keys where ${REPLACED} union all select new.id; end`,
    `key_changes_before_update before update on api_keys
      begin insert into key_changes (key_id) select id from api_keys where id = old.id or ${REPLACED}; end`,
    `key_changes_after_delete after delete on api_keys
      begin insert into key_changes (key_id) values (old.id); end`,
    `key_changes_are_few after insert on key_changes
      begin delete from key_changes where number < new.number - ${KEPT}; end`,
  ];
  for (const trigger of triggers) await sql.raw(`create trigger ${trigger}`).execute(db);
}
