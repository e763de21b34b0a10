import { printable } from '../basics/index.ts';

/** Something that the schema of a store has: a table, a column, an index, a trigger, … */
export interface SchemaPart {
  type: string;
  name: string;
  /** How it is defined. */
  definition: string;
}

/** A part of the schema that this version of the program makes otherwise. */
export interface SchemaDifference {
  /** `table`, `column`, `index`, `trigger`, … */
  type: string;
  /** The name; that of a column, and on PostgreSQL of a trigger, with its table: `api_keys.name`. */
  name: string;
  /** `missing` is what the store lacks, and `extra` what it has beside that. */
  difference: 'missing' | 'extra' | 'changed';
}

/** Finds the parts in which a schema is not as it is made. */
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
