import { LIMIT_SECONDS } from '../keys/basics/index.ts';

/** The field that tells editors the schema of a file. */
export const SCHEMA_FIELD = { type: 'string', description: 'The location of this schema, for editors.' };

/** The form of a limit with one of these units. */
export function limitWith(units: readonly string[], examples: readonly string[]) {
  return { type: 'string', pattern: `^\\s*\\d{1,12} */ *(?:${units.join('|')})\\s*$`, examples };
}

/** The form of a limit of requests. */
export const LIMIT = limitWith(Object.keys(LIMIT_SECONDS), ['100/m', '10000/month']);

/** The form of a permission on any resource, in upper or lower case. */
export const PERMISSION = {
  type: 'string',
  pattern: '^\\s*[A-Za-z][A-Za-z0-9_]{0,63}\\s*:\\s*[A-Za-z][A-Za-z0-9_]{0,63}\\s*$',
};

/** The form of a duration. */
export const DURATION = { type: 'string', pattern: '^\\s*[0-9]{1,9}[smhdw]\\s*$', examples: ['90d'] };

/** The form of a header with a name of our own choice. */
export const HEADER = { pattern: '^[0-9A-Za-z]+(?:-[0-9A-Za-z]+)*$', examples: ['X-Api-Key'] };
