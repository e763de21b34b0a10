import { type Kysely, sql } from 'kysely';
import type { DialectName } from '../connection.ts';
import type { Tables } from '../tables.ts';
import { allowPruning } from './postgres-triggers.ts';
import { textType } from './text.ts';

/** The client's address of refused requests, and where the log starts: entries up to there, and no others, can go. */
export async function addAuditRetention(db: Kysely<Tables>, dialect: DialectName): Promise<void> {
  const text = textType(dialect);
  await db.schema.alterTable('audit_log').addColumn('address', text).execute();
  await db.schema
    .createTable('audit_start')
    .addColumn('one', 'integer', (column) => column.primaryKey().check(sql`one = 1`))
    .addColumn('number', 'bigint', (column) => column.notNull())
    .addColumn('hash', text, (column) => column.notNull())
    .execute();
  if (dialect === 'postgres') return allowPruning(db);
  await sql`drop trigger audit_log_no_delete`.execute(db);
  await sql
    .raw(
      `create trigger audit_log_no_delete before delete on audit_log
         when old.number > coalesce((select number from audit_start), 0)
         begin select raise(abort, 'the audit log only grows'); end`,
    )
    .execute(db);
}
