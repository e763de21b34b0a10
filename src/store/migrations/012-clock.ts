import { type Kysely, sql } from 'kysely';
import type { Tables } from '../tables.ts';

/** The latest time that a program has seen when it wrote. */
export async function createClock(db: Kysely<Tables>): Promise<void> {
  await db.schema
    .createTable('clock')
    .addColumn('one', 'integer', (column) => column.primaryKey())
    .addColumn('latest', 'bigint', (column) => column.notNull())
    .addCheckConstraint('clock_has_one_row', sql`one = 1`)
    .execute();
}
