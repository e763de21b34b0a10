import { type Kysely, sql } from 'kysely';
import type { DialectName } from '../connection.ts';
import type { Tables } from '../tables.ts';
import { textType } from './text.ts';

/** As in `api_keys`: no value is checked before the keys are inserted there. */
const TEXTS = [
  'after',
  'id',
  'name',
  'description',
  'roles',
  'permissions',
  'public_id',
  'digest',
  'created_by',
  'previous_digest',
  'previous_public_id',
  'search_text',
  'name_skeleton',
  'checksum',
];
const NUMBERS = ['created_at', 'expires_at', 'disabled_at', 'rotated_at', 'rotation_grace', 'previous_ends_at'];

/** Keys of imports that are under way, which are no keys yet: those that belong together, by their position. */
export async function createStagedKeys(db: Kysely<Tables>, dialect: DialectName): Promise<void> {
  const text = textType(dialect);
  let table = db.schema
    .createTable('staged_keys')
    .addColumn('batch', text, (column) => column.notNull())
    .addColumn('position', 'bigint', (column) => column.notNull())
    .addColumn('managed', 'integer')
    .addPrimaryKeyConstraint('staged_keys_in_order', ['batch', 'position']);
  for (const column of TEXTS) table = table.addColumn(column as never, text);
  for (const column of NUMBERS) table = table.addColumn(column as never, 'bigint');
  await table.execute();
  if (dialect === 'sqlite') await replaceTriggers(db);
}

/** What is done once for all staged keys is not done for each: while they are inserted, this table has a row. */
async function replaceTriggers(db: Kysely<Tables>): Promise<void> {
  await sql`create table staged_insertion (batch text not null)`.execute(db);
  for (const name of ['key_state_after_insert', 'key_changes_before_insert', 'api_keys_search_after_insert']) {
    const { rows } = await sql<{ definition: string }>`select sql as definition from sqlite_schema
      where type = 'trigger' and name = ${name}`.execute(db);
    await sql.raw(`drop trigger ${name}`).execute(db);
    const [head, body] = rows[0]!.definition.split(/\bbegin\b/, 2);
    await sql.raw(`${head} when not exists (select 1 from staged_insertion) begin ${body}`).execute(db);
  }
}
