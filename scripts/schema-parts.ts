import { LIMIT_SECONDS, LIMIT_UNITS } from '../src/keys/basics/limit.ts';
import { ACTIONS } from '../src/keys/permissions/catalog.ts';

/** A limit of requests. */
export const LIMIT = limitIn(Object.keys(LIMIT_SECONDS), ['100/m', '10000/month']);
/** One of a key, which may be a budget. */
export const KEY_LIMIT = limitIn(LIMIT_UNITS, ['100/m', '10000/month', '1000/budget', '1/uses']);

function limitIn(units: readonly string[], examples: readonly string[]) {
  return { type: 'string', pattern: `^\\s*\\d{1,12} */ *(?:${units.join('|')})\\s*$`, examples };
}

/** A permission of any resource, case-insensitive. */
export const PERMISSION = {
  type: 'string',
  pattern: `^\\s*[A-Za-z][A-Za-z0-9_]{0,63}\\s*:${anyOf(ACTIONS).slice(1)}`,
};

/** Where an editor finds the schema of a file. */
export const SCHEMA_FIELD = { type: 'string', description: 'The location of this schema, for editors.' };

/** Properties in the order of the rules' fields. The types make sure that none is forgotten. */
export function inOrder<Field extends string>(
  fields: readonly Field[],
  properties: Record<Field, object>,
): Record<string, object> {
  return Object.fromEntries(fields.map((field) => [field, properties[field]]));
}

/** A case-insensitive pattern for any of some words: JSON Schema has no flag for that. */
export function anyOf(words: readonly string[]): string {
  const letters = (word: string) => word.replaceAll(/[A-Z]/g, (letter) => `[${letter}${letter.toLowerCase()}]`);
  return `^\\s*(?:${words.map(letters).join('|')})\\s*$`;
}

export const DURATION = { type: 'string', pattern: '^\\s*[0-9]{1,9}[smhdw]\\s*$', examples: ['90d'] };
