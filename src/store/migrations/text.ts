import { type RawBuilder, sql } from 'kysely';
import type { DialectName } from '../connection.ts';

/** The type of texts, which are ordered by their bytes: PostgreSQL's own order changes with the machine's libraries. */
export function textType(dialect: DialectName): 'text' | RawBuilder<unknown> {
  return dialect === 'postgres' ? sql`text collate "C"` : 'text';
}
