import type { KeyObject } from 'node:crypto';
import { type Kysely, sql, type SqlBool } from 'kysely';
import { type AuditDraft, type AuditValues, auditValuesOf, chainHash } from '../keys/audit/index.ts';
import type { StoredKey } from '../keys/key/index.ts';
import type { ImportEntry } from '../keys/transfer/index.ts';
import { chunksOf, readStoredKey } from './rows.ts';
import type { ImportEntryTable, ImportTable, Tables } from './tables.ts';

/** A key that an import has, with what the audit log records of it. */
export interface ImportedKey {
  id: string;
  name: string;
  values: AuditValues;
}

/** What the audit log says of a key that was imported. */
export function draftOf(entry: ImportEntry, { id, name, values }: ImportedKey): AuditDraft {
  return { ...entry, apiKey: { id, name }, before: null, after: values };
}

/**
 * By what whoever writes an entry knows that the key was imported so: in a log with a key, nobody makes it without that
 * key. @param place the number of the import, and that of the line
 */
export function dueHash(
  draft: AuditDraft,
  place: Pick<ImportEntryTable, 'import' | 'number'>,
  auditKey: KeyObject | undefined,
): string {
  return chainHash({ ...draft, number: place.number }, `import ${place.import}`, auditKey);
}

/** Whether an entry is one of an import whose keys are there. */
export const isPublished = sql<SqlBool>`import in (select number from imports)`;

/**
 * The entries of some keys that were imported, in the order of the lines; but for those of which somebody else wrote
 * that they are due, or wrote the key.
 * @param rows of which import, in this order
 */
export async function draftsOf(
  db: Kysely<Tables>,
  rows: readonly ImportEntryTable[],
  auditKey: KeyObject | undefined,
): Promise<AuditDraft[]> {
  const keys = new Map<string, StoredKey>();
  for (const ids of chunksOf(rows.map(({ key_id: id }) => id)))
    for (const row of await db.selectFrom('api_keys').selectAll().where('id', 'in', ids).execute())
      keys.set(row.id, readStoredKey(row));
  const imports = new Map<number, ImportTable>();
  for (const row of await db.selectFrom('imports').selectAll().execute()) imports.set(Number(row.number), row);
  return rows.flatMap((row) => {
    const [key, made] = [keys.get(row.key_id), imports.get(Number(row.import))];
    if (!key || !made) return [];
    const actor = { kind: 'CLI', id: null, name: made.actor_name } as const;
    const entry = { at: Number(made.at), actor, action: 'IMPORT' } as const;
    const draft = draftOf(entry, { id: key.id, name: key.name, values: auditValuesOf(key) });
    return dueHash(draft, { import: Number(row.import), number: row.number }, auditKey) === row.hash ? [draft] : [];
  });
}

/** What is written of the entries of these keys that are due. */
export function findDueRows(db: Kysely<Tables>, ids: readonly string[]): Promise<ImportEntryTable[]> {
  return db
    .selectFrom('import_entries')
    .selectAll()
    .where('key_id', 'in', ids)
    .orderBy('import')
    .orderBy('number')
    .execute();
}

/** Those of these keys that were imported, and of which the audit log has no entry yet. */
export async function findDue(
  db: Kysely<Tables>,
  ids: readonly string[],
  auditKey: KeyObject | undefined,
): Promise<Set<string>> {
  const due = new Set<string>();
  for (const chunk of chunksOf(ids)) {
    const rows = await findDueRows(db, chunk);
    if (rows.length > 0) for (const { apiKey: key } of await draftsOf(db, rows, auditKey)) due.add(key!.id);
  }
  return due;
}
