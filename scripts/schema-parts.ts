/** The field that tells editors the schema of a file. */
export const SCHEMA_FIELD = { type: 'string', description: 'The location of this schema, for editors.' };

/** Properties in the order of the rules' fields. The types make sure that none is missing. */
export function inOrder<Field extends string>(
  fields: readonly Field[],
  properties: Record<Field, object>,
): Record<string, object> {
  return Object.fromEntries(fields.map((field) => [field, properties[field]]));
}
