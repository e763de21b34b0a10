import { assertValid, formatList, KeysError, printable, suggestion } from '../basics/index.ts';
import { type Status, STATUSES } from '../key/index.ts';
import { type Catalog, parseRoles, type Role } from '../permissions/index.ts';

/** Parses the roles of a filter. @throws ValidationError */
export function readRoles(items: readonly string[], catalog: Catalog): Role[] {
  const { values, issues } = parseRoles(items, catalog);
  assertValid(issues);
  return values;
}

/** Parses a status. @throws KeysError INPUT_INVALID */
export function readStatus(text: string): Status {
  const status = STATUSES.find((name) => name === text.trim().toUpperCase());
  if (!status)
    throw new KeysError(
      'INPUT_INVALID',
      `"${printable(text)}" is not a status. ${suggestion(text.trim(), STATUSES)}` +
        `The statuses are ${formatList(STATUSES)}.`,
    );
  return status;
}
