import { type RawBuilder, sql } from 'kysely';
import type { DialectName } from '../connection.ts';

/** The type of text columns, sorted by bytes: PostgreSQL's default order depends on the machine's libraries. */
export function textType(dialect: DialectName): 'text' | RawBuilder<unknown> {
  return dialect === 'postgres' ? sql`text collate "C"` : 'text';
}
