import { type Kysely, sql } from 'kysely';
import type { DialectName } from '../connection.ts';
import type { Tables } from '../tables.ts';
import { textType } from './text.ts';

const OUTCOMES = ['accepted', 'forbidden', 'limited', 'refused'];

const CLUSTERED = sql`without rowid`;
/** PostgreSQL changes a row within its page, and no index, where there is room: hours are changed again and again. */
const STORAGE = {
  sqlite: { hour: CLUSTERED, day: CLUSTERED },
  postgres: { hour: sql`with (fillfactor = 50)`, day: sql`` },
} as const;

/**
 * How the requests of keys ended, by hours and by days in UTC, which are counted since 1970. In the order of time: what
 * is written stands together, and so does what is too old. An index finds what is of a key. What a key leaves that is
 * deleted does not refer to it: taking access away does not wait until thousands of rows are removed.
 */
export async function createUsageByHour(db: Kysely<Tables>, dialect: DialectName): Promise<void> {
  for (const period of ['hour', 'day'] as const) {
    const name = `key_usage_${period}s`;
    let table = db.schema
      .createTable(name)
      .addColumn(period, 'integer', (column) => column.notNull())
      .addColumn('key_id', textType(dialect), (column) => column.notNull());
    for (const outcome of OUTCOMES) table = table.addColumn(outcome as never, 'bigint', (column) => column.notNull());
    table = table.addPrimaryKeyConstraint(`${name}_in_order` as never, [period, 'key_id'] as never);
    await table.modifyEnd(STORAGE[dialect][period]).execute();
    await db.schema.createIndex(`${name}_of_key`).on(name).columns(['key_id', period]).execute();
  }
  await db.schema
    .createTable('key_usage_leftovers')
    .addColumn('key_id', textType(dialect), (column) => column.primaryKey().notNull())
    .execute();
}
