import type { KeyObject } from 'node:crypto';
import { type Kysely, sql, type SqlBool } from 'kysely';
import { type AuditDraft, type AuditValues, auditValuesOf, chainHash } from '../keys/audit/index.ts';
import type { ImportEntry } from '../keys/transfer/index.ts';
import { chunksOf, readStoredKey } from './rows.ts';
import type { ApiKeyTable, ImportEntryTable, ImportTable, Tables } from './tables.ts';

/** A key that was imported, and what its entry in the audit log is made of, which is still to be written. */
type DueRow = ApiKeyTable & Pick<ImportTable, 'at' | 'actor_name'> & Omit<ImportEntryTable, 'key_id'>;

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

/** The keys whose entries are still to be written, in the order of the lines. */
export function selectDue(db: Kysely<Tables>) {
  return db
    .selectFrom('import_entries as entry')
    .innerJoin('imports', 'imports.number', 'entry.import')
    .innerJoin('api_keys', 'api_keys.id', 'entry.key_id')
    .selectAll('api_keys')
    .select(['imports.at', 'imports.actor_name', 'entry.import', 'entry.number', 'entry.hash'])
    .orderBy('entry.number');
}

/** The entries, but for those of which somebody else wrote that they are due, or wrote the key. */
export function draftsOf(rows: readonly DueRow[], auditKey: KeyObject | undefined): AuditDraft[] {
  return rows.flatMap((row) => {
    const key = readStoredKey(row);
    const actor = { kind: 'CLI', id: null, name: row.actor_name } as const;
    const entry = { at: Number(row.at), actor, action: 'IMPORT' } as const;
    const draft = draftOf(entry, { id: key.id, name: key.name, values: auditValuesOf(key) });
    const place = { import: Number(row.import), number: row.number };
    return dueHash(draft, place, auditKey) === row.hash ? [draft] : [];
  });
}

/** Those of these keys that were imported, and of which the audit log has no entry yet. */
export async function findDue(
  db: Kysely<Tables>,
  ids: readonly string[],
  auditKey: KeyObject | undefined,
): Promise<Set<string>> {
  const due = new Set<string>();
  for (const chunk of chunksOf(ids)) {
    const rows = await selectDue(db).where('entry.key_id', 'in', chunk).execute();
    for (const { apiKey: key } of draftsOf(rows, auditKey)) due.add(key!.id);
  }
  return due;
}
