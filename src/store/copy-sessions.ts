import { type Kysely, sql } from 'kysely';
import type { Connection, DialectName } from './connection.ts';
import type { Tables } from './tables.ts';

/** A row of any table. */
export type Row = Record<string, string | number | null>;

/** How much of an SQLite file is kept in memory while many rows are inserted all over it, in KiB. */
const CACHE_KIB = 256 * 1024;

/** Runs `work` on a store as it is at one moment, while others may change it. @throws KeysError STORE_… */
export function withSnapshot<Result>(
  connection: Connection,
  work: (source: Kysely<Tables>) => Promise<Result>,
): Promise<Result> {
  const { dialect } = connection;
  return connection.run((db) =>
    db.connection().execute(async (source) => {
      await sql.raw(dialect === 'sqlite' ? 'begin' : 'begin isolation level repeatable read read only').execute(source);
      try {
        await allowWaiting(source, dialect);
        // That moment is the first time that it is read.
        await source.selectFrom('audit_head').select('number').execute();
        return await work(source);
      } finally {
        await sql`rollback`.execute(source);
      }
    }),
  );
}

/** Runs `work`, which inserts many rows in any order, in a transaction of an empty store. */
export async function withBulkInserts<Result>(
  target: Kysely<Tables>,
  dialect: DialectName,
  work: (target: Kysely<Tables>) => Promise<Result>,
): Promise<Result> {
  await allowWaiting(target, dialect);
  if (dialect === 'sqlite') {
    // A key may come before its creator.
    await sql`pragma defer_foreign_keys = on`.execute(target);
    await sql`pragma cache_size = ${sql.lit(-CACHE_KIB)}`.execute(target);
    return work(target);
  }
  const creators = sql`alter table api_keys alter constraint api_keys_created_by_fkey`;
  await sql`${creators} deferrable initially deferred`.execute(target);
  const result = await work(target);
  await sql`set constraints all immediate`.execute(target);
  await sql`${creators} not deferrable`.execute(target);
  return result;
}

/** Inserts rows of a table, as one parameter: a statement with one for each value takes as long to make as to run. */
export async function insertRows(
  target: Kysely<Tables>,
  dialect: DialectName,
  table: keyof Tables,
  rows: readonly Row[],
): Promise<void> {
  const columns = Object.keys(rows[0]!);
  const references = columns.map((column) => sql.ref(column));
  const json = JSON.stringify(dialect === 'sqlite' ? rows.map((row) => columns.map((column) => row[column])) : rows);
  const values =
    dialect === 'sqlite'
      ? sql`select ${sql.join(columns.map((_, index) => sql.raw(`value ->> ${index}`)))} from json_each(${json})`
      : sql`select ${sql.join(references)} from json_populate_recordset(null::${sql.table(table)}, ${json})`;
  await target
    .insertInto(table)
    .columns(columns as [])
    .expression(values)
    .execute();
}

/** Each store idles while the other one is queried: a server must not end the transaction for that. */
async function allowWaiting(db: Kysely<Tables>, dialect: DialectName): Promise<void> {
  if (dialect === 'postgres') await sql`set local idle_in_transaction_session_timeout = 0`.execute(db);
}
