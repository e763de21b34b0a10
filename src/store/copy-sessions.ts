import { type Kysely, sql } from 'kysely';
import { withoutTriggers } from './bulk-insertion.ts';
import type { Connection, DialectName } from './connection.ts';
import { withDeferredIndexes } from './deferred-indexes.ts';
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

/**
 * Runs `insert`, which fills all tables of an empty store in any order, in a transaction of that store. What there is
 * to find their rows is made afterwards.
 */
export async function withBulkInserts(
  target: Kysely<Tables>,
  dialect: DialectName,
  insert: () => Promise<void>,
): Promise<void> {
  await allowWaiting(target, dialect);
  if (dialect === 'sqlite') {
    // A key may come before its creator.
    await sql`pragma defer_foreign_keys = on`.execute(target);
    await withoutTriggers(target, () => withDeferredIndexes(target, dialect, insert));
    return;
  }
  const creators = sql`alter table api_keys alter constraint api_keys_created_by_fkey`;
  await sql`${creators} deferrable initially deferred`.execute(target);
  await withDeferredIndexes(target, dialect, async () => {
    await insert();
    await sql`set constraints all immediate`.execute(target);
  });
  await sql`${creators} not deferrable`.execute(target);
}

/** Each store idles while the other one is queried: a server must not end the transaction for that. */
async function allowWaiting(db: Kysely<Tables>, dialect: DialectName): Promise<void> {
  if (dialect === 'postgres') await sql`set local idle_in_transaction_session_timeout = 0`.execute(db);
}
