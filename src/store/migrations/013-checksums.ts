import { type Kysely, sql } from 'kysely';
import type { DialectName } from '../connection.ts';
import { checksumOf } from '../rows.ts';
import type { Tables } from '../tables.ts';
import { keepGraceEnds, removeChecksums } from './postgres-triggers.ts';
import { textType } from './text.ts';

const PAGE_ROWS = 500;

/** A checksum of each key. What changes a key without it, such as an older version of the program, removes it. */
export async function addChecksums(db: Kysely<Tables>, dialect: DialectName): Promise<void> {
  await db.schema.alterTable('api_keys').addColumn('checksum', textType(dialect)).execute();
  for (let last = ''; ;) {
    const rows = await db
      .selectFrom('api_keys')
      .selectAll()
      .where('id', '>', last)
      .orderBy('id')
      .limit(PAGE_ROWS)
      .execute();
    if (rows.length === 0) break;
    const values = rows.map((row) => sql`(${row.id}, ${checksumOf(row)})`);
    await sql`with summed(id, checksum) as (values ${sql.join(values)})
      update api_keys set checksum = summed.checksum from summed where summed.id = api_keys.id`.execute(db);
    last = rows.at(-1)!.id;
  }
  if (dialect === 'postgres') {
    await removeChecksums(db);
    await keepGraceEnds(db);
  } else {
    await sql`create trigger api_keys_without_checksum after update on api_keys when new.checksum is old.checksum
      begin update api_keys set checksum = null where id = new.id; end`.execute(db);
  }
}
