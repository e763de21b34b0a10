import type { Kysely } from 'kysely';
import type { DialectName } from '../connection.ts';
import type { Tables } from '../tables.ts';
import { textType } from './text.ts';

/** What the forms of a session led to: one that is sent twice is done once. */
export async function addFormOutcomes(db: Kysely<Tables>, dialect: DialectName): Promise<void> {
  await db.schema.alterTable('sessions').addColumn('form_outcomes', textType(dialect)).execute();
}
