import { parseRates } from '../keys/basics/index.ts';
import { type Catalog, parsePermissions, readPeriod } from '../keys/permissions/index.ts';
import { DURATION, LIMIT, PERMISSION } from './patterns.ts';
import { parsed, text } from './schema.ts';

/** A list of permissions. @param empty the problem with an empty list, if it is not allowed */
export function permissionsOf(catalog: Catalog, empty?: string) {
  return parsed((items) => parsePermissions(items, catalog), PERMISSION, empty);
}

/** A limit of requests, such as `100/m`. */
export const limit = text((given) => {
  const { values, issues } = parseRates([given]);
  return issues.length > 0 ? { refusal: issues.map(({ message }) => message) } : { value: values[0]! };
}, LIMIT);

/** A duration in milliseconds. @param least the shortest */
export function period(least: number) {
  return text<number>((given) => {
    const read = readPeriod(given, least);
    return typeof read === 'number' ? { value: read } : { refusal: read };
  }, DURATION);
}
