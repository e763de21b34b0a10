import { type Kysely, sql } from 'kysely';
import type { DialectName } from '../connection.ts';
import type { Tables } from '../tables.ts';
import { forbidAuditChanges } from './postgres-triggers.ts';
import { textType } from './text.ts';

/** Who did what: an append-only chain of entries, and the number and hash of the newest one. */
export async function createAuditLog(db: Kysely<Tables>, dialect: DialectName): Promise<void> {
  const text = textType(dialect);
  await db.schema
    .createTable('audit_log')
    .addColumn('number', 'bigint', (column) => column.primaryKey())
    .addColumn('at', 'bigint', (column) => column.notNull())
    .addColumn('actor_kind', text, (column) => column.notNull())
    .addColumn('actor_id', text)
    .addColumn('actor_name', text)
    .addColumn('action', text, (column) => column.notNull())
    .addColumn('key_id', text)
    .addColumn('key_name', text)
    .addColumn('before', text)
    .addColumn('after', text)
    .addColumn('hash', text, (column) => column.notNull())
    .execute();
  for (const column of ['at', 'key_id', 'key_name'] as const)
    await db.schema.createIndex(`audit_log_by_${column}`).on('audit_log').column(column).execute();
  await db.schema
    .createTable('audit_head')
    .addColumn('one', 'integer', (column) => column.primaryKey().check(sql`one = 1`))
    .addColumn('number', 'bigint', (column) => column.notNull())
    .addColumn('hash', text, (column) => column.notNull())
    .execute();
  if (dialect === 'postgres') return forbidAuditChanges(db);
  for (const change of ['update', 'delete']) {
    await sql
      .raw(
        `create trigger audit_log_no_${change} before ${change} on audit_log ` +
          `begin select raise(abort, 'the audit log only grows'); end`,
      )
      .execute(db);
  }
}
