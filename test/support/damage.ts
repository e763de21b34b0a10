import { readFileSync, writeFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import { isPostgresUrl } from '../../src/store/postgres-address.ts';
import { changeDirectly, readDirectly } from './direct.ts';

/** Changes a key by SQL without updating its checksum, like a disk error. */
export async function damageKey(store: string, name: string, change: string): Promise<void> {
  const update = `update api_keys set ${change} where name = '${name}'`;
  if (isPostgresUrl(store)) {
    const turn = (state: string) => `alter table api_keys ${state} trigger api_keys_without_checksum`;
    return changeDirectly(store, turn('disable'), update, turn('enable'));
  }
  const [trigger] = await readDirectly(store, `select sql from sqlite_schema where name = 'api_keys_without_checksum'`);
  await changeDirectly(store, 'drop trigger api_keys_without_checksum', update, String(trigger!['sql']));
}

/** Overwrites the entries of an index of the audit log, in the file, like a disk error. */
export function damageIndex(path: string): void {
  const bytes = readFileSync(path);
  const db = new Database(path);
  const root = db
    .prepare<[], number>("select rootpage from sqlite_schema where name = 'audit_log_by_key_id'")
    .pluck()
    .get()!;
  db.close();
  bytes.fill(0, (root - 1) * 4096 + 8, root * 4096);
  writeFileSync(path, bytes);
}

/** Changes a word in the definitions of a store's tables, like a disk error. */
export function damageSchema(path: string, { name, word, by }: { name: string; word: string; by: string }): void {
  const db = new Database(path).unsafeMode();
  db.pragma('writable_schema = on');
  const { changes } = db
    .prepare('update sqlite_schema set sql = replace(sql, ?, ?) where name = ? and instr(sql, ?)')
    .run(word, by, name, word);
  db.close();
  if (changes !== 1) throw new Error(`${name} has no ${word}.`);
}

/** Damaged definitions that SQLite reads without an error. */
export const SCHEMA_DAMAGES = [
  { name: 'api_keys', word: 'rotation_grace', by: 'rotation_grabe' },
  { name: 'audit_log', word: 'actor_name', by: 'actor_nane' },
  { name: 'key_changes_before_update', word: 'public_id', by: 'public_ad' },
] as const;
