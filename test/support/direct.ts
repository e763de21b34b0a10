import { existsSync, readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { isPostgresUrl } from '../../src/store/postgres-address.ts';
import { askPostgres } from './postgres.ts';

/** Queries a store of any dialect by SQL, behind svc-api's back. */
export async function readDirectly(store: string, query: string): Promise<Record<string, unknown>[]> {
  if (isPostgresUrl(store)) return askPostgres(store, query);
  const db = new Database(store, { readonly: true });
  try {
    return db.prepare<[], Record<string, unknown>>(query).all();
  } finally {
    db.close();
  }
}

/** The content of a store of any dialect, for detecting writes; undefined if there is no store. */
export async function contentOf(store: string): Promise<string | undefined> {
  if (!isPostgresUrl(store)) return existsSync(store) ? readFileSync(store, 'base64') : undefined;
  const tables = await askPostgres(
    store,
    'select table_name from information_schema.tables where table_schema = current_schema() order by 1',
  );
  const contents = [];
  for (const { table_name: table } of tables)
    contents.push([table, await askPostgres(store, `select * from ${String(table)} order by 1`)]);
  return contents.length > 0 ? JSON.stringify(contents) : undefined;
}

/**
 * Changes a store of any dialect by SQL, behind svc-api's back. Returns once svc-api no longer trusts an earlier check
 * of the file.
 */
export async function changeDirectly(store: string, ...statements: string[]): Promise<void> {
  if (isPostgresUrl(store)) return void (await askPostgres(store, statements.join(';\n')));
  const db = new Database(store);
  try {
    for (const statement of statements) db.exec(statement);
  } finally {
    db.close();
  }
  await setTimeout(2);
}

/** Removes the triggers that protect the audit log. */
export function unlockAuditLog(store: string): Promise<void> {
  const triggers = isPostgresUrl(store)
    ? ['audit_log_only_grows on audit_log', 'audit_log_keeps_entries on audit_log']
    : ['audit_log_no_update', 'audit_log_no_delete'];
  return changeDirectly(store, ...triggers.map((trigger) => `drop trigger if exists ${trigger}`));
}
