import { type Kysely, sql } from 'kysely';
import type { DialectName } from '../connection.ts';
import type { Tables } from '../tables.ts';
import { textType } from './text.ts';

const OUTCOMES = ['accepted', 'forbidden', 'limited', 'refused'];

/**
 * How the requests of keys ended, by hours and by days in UTC, which are counted since 1970. In the order of time: what
 * is written stands together, and so does what is too old. An index finds what is of a key.
 */
export async function createUsageByHour(db: Kysely<Tables>, dialect: DialectName): Promise<void> {
  for (const period of ['hour', 'day']) {
    const name = `key_usage_${period}s`;
    let table = db.schema
      .createTable(name)
      .addColumn(period, 'integer', (column) => column.notNull())
      .addColumn('key_id', textType(dialect), (column) =>
        column.notNull().references('api_keys.id').onDelete('cascade'),
      );
    for (const outcome of OUTCOMES) table = table.addColumn(outcome as never, 'bigint', (column) => column.notNull());
    table = table.addPrimaryKeyConstraint(`${name}_in_order` as never, [period, 'key_id'] as never);
    await (dialect === 'sqlite' ? table.modifyEnd(sql`without rowid`) : table).execute();
    await db.schema.createIndex(`${name}_of_key`).on(name).columns(['key_id', period]).execute();
  }
}
