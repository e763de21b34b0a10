import { printable } from '../basics/index.ts';

/** A part of a store's schema: a table, a column, an index, a trigger, … */
export interface SchemaPart {
  type: string;
  name: string;
  /** Its definition. */
  definition: string;
}

/** A part of the schema that differs from the one this version creates. */
export interface SchemaDifference {
  /** `table`, `column`, `index`, `trigger`, … */
  type: string;
  /** Its name. Columns, and triggers on PostgreSQL, include the table: `api_keys.name`. */
  name: string;
  /** `missing` from the store, or `extra` in it. */
  difference: 'missing' | 'extra' | 'changed';
}

/** Finds the differences between a schema and the expected one. */
export function differencesOf(made: readonly SchemaPart[], found: readonly SchemaPart[]): SchemaDifference[] {
  const keyOf = ({ type, name }: SchemaPart) => `${type} ${name}`;
  const left = new Map(found.map((part) => [keyOf(part), part]));
  const differences: SchemaDifference[] = [];
  for (const part of made) {
    const { type, name, definition } = part;
    const there = left.get(keyOf(part));
    left.delete(keyOf(part));
    if (there?.definition !== definition) differences.push({ type, name, difference: there ? 'changed' : 'missing' });
  }
  for (const { type, name } of left.values()) differences.push({ type, name, difference: 'extra' });
  return differences;
}

/** A difference as text: `the trigger audit_log_no_update is missing`. */
export function differenceText({ type, name, difference }: SchemaDifference): string {
  const what = `the ${type} ${printable(name, 100)}`;
  if (difference === 'extra') return `${what} is none of svc-api's`;
  return `${what} is ${difference}`;
}
