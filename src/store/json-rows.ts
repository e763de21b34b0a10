import { type RawBuilder, sql } from 'kysely';
import type { DialectName } from './connection.ts';

/** Rows as one parameter: a statement with one for each value takes as long to make as to run. */
export function jsonRows(dialect: DialectName, rows: readonly (readonly unknown[])[]): RawBuilder<unknown> {
  const json = JSON.stringify(rows);
  return dialect === 'sqlite' ? sql`json_each(${json})` : sql`jsonb_array_elements(${json}::jsonb) as given(value)`;
}

/** Those rows whose first value is the id of a key that exists. */
export function jsonRowsOfKeys(dialect: DialectName, rows: readonly (readonly unknown[])[]): RawBuilder<unknown> {
  return sql`${jsonRows(dialect, rows)} where exists (select 1 from api_keys where id = ${jsonRowText(0)})`;
}

/** A value of a given row. */
export function jsonRowText(index: number): RawBuilder<string> {
  return sql`(value ->> ${sql.lit(index)})`;
}

/** A whole number of a given row. */
export function jsonRowNumber(index: number): RawBuilder<number> {
  return sql`cast(value ->> ${sql.lit(index)} as bigint)`;
}
