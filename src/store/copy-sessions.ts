import { type Kysely, sql } from 'kysely';
import type { Connection, DialectName } from './connection.ts';
import { BULK_CACHE_KIB } from './insert-rows.ts';
import type { Tables } from './tables.ts';

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
    await sql`pragma cache_size = ${sql.lit(-BULK_CACHE_KIB)}`.execute(target);
    return work(target);
  }
  const creators = sql`alter table api_keys alter constraint api_keys_created_by_fkey`;
  await sql`${creators} deferrable initially deferred`.execute(target);
  const result = await work(target);
  await sql`set constraints all immediate`.execute(target);
  await sql`${creators} not deferrable`.execute(target);
  return result;
}

/** Each store idles while the other one is queried: a server must not end the transaction for that. */
async function allowWaiting(db: Kysely<Tables>, dialect: DialectName): Promise<void> {
  if (dialect === 'postgres') await sql`set local idle_in_transaction_session_timeout = 0`.execute(db);
}
