import type { PreparedStatement } from './node-database.ts';

/**
 * Runs a statement, or one that changes rows once for each of several lists of parameters. A statement that inserts
 * many rows by itself would first note every page that it changes, lest it fail in the middle.
 * @returns the rows that it answers, and how many were changed
 */
export function runStatement(
  statement: PreparedStatement,
  parameters: readonly unknown[],
): { rows: unknown[]; changes: number } {
  if (statement.reader) return { rows: statement.all(parameters), changes: 0 };
  const lists = Array.isArray(parameters[0]) ? parameters : [parameters];
  let changes = 0;
  for (const list of lists) changes += statement.run(list).changes;
  return { rows: [], changes };
}
