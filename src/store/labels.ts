import type { Kysely } from 'kysely';
import type { ApiKey } from '../keys/key/index.ts';
import type { DialectName } from './connection.ts';
import { insertLists } from './insert-rows.ts';
import { chunksOf, labelsOf } from './rows.ts';
import type { KeyLabelTable, Tables } from './tables.ts';

const COLUMNS = ['label', 'created_at', 'key_id'] as const satisfies readonly (keyof KeyLabelTable)[];

/** The rows of what a key is selected by, each as its columns. */
export function labelRowsOf(key: ApiKey): unknown[][] {
  return labelsOf(key).map((label) => [label, key.createdAt, key.id]);
}

/** Remembers what new keys are selected by. */
export async function insertLabelRows(
  db: Kysely<Tables>,
  dialect: DialectName,
  all: readonly unknown[][],
): Promise<void> {
  for (const rows of chunksOf(all)) await insertLists(db, dialect, 'key_labels', COLUMNS, rows);
}

/** The same of keys that there were. */
export async function replaceLabels(db: Kysely<Tables>, dialect: DialectName, keys: readonly ApiKey[]): Promise<void> {
  for (const chunk of chunksOf(keys.map(({ id }) => id)))
    await db.deleteFrom('key_labels').where('key_id', 'in', chunk).execute();
  await insertLabelRows(db, dialect, keys.flatMap(labelRowsOf));
}
