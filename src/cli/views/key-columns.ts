import { nearest } from '../../keys/nearest.ts';
import { listOf, printable } from '../../keys/text.ts';
import { CliError } from '../errors.ts';
import { fieldText, type KeyJson } from './key-view.ts';
import { relativeTime } from '../../keys/relative-time.ts';
import type { Column } from './table.ts';

/** A column of a list of keys. */
export interface KeyColumn extends Column {
  /** By which `--columns` picks it. */
  readonly name: string;
  /** Its cell for a program. */
  text(key: KeyJson): string;
  /** Its cell on a terminal, if that differs. */
  shown?(key: KeyJson): string;
}

/** To which width texts may be shortened. */
const [NAME, TEXT] = [10, 8];

const name = column('name', ({ name }) => name, { least: NAME });
const status = column('status', ({ status }) => status, {
  shown: ({ status, rotation }) => (rotation ? `${status}, rotating` : status),
});
const roles = grantColumn('roles', ({ roles }) => roles);
const permissions = grantColumn('permissions', ({ permissions }) => permissions);
const grants = grantColumn('grants', ({ roles, permissions }) => [...roles, ...permissions]);
const unknownGrants = column('unknown-grants', (key) => key.unknownGrants, { least: TEXT });
const limits = column('limits', (key) => key.limits, { least: TEXT });
const allowFrom = column('allow-from', (key) => key.allowFrom, { least: TEXT });
const prefix = column('prefix', ({ prefix }) => prefix, { least: TEXT });
const created = time('created', ({ createdAt }) => createdAt);
const expires = time('expires', ({ expiresAt }) => expiresAt, 1);
const lastUsed = time('last-used', ({ lastUsedAt }) => lastUsedAt, 2);
const uses = column('uses', (key) => key.uses);
const rotation = column('rotation', (key) => key.rotation, { least: TEXT });
const id = column('id', (key) => key.id, { least: TEXT });
const description = column('description', (key) => key.description, { least: TEXT });

/** What a terminal shows unless told otherwise. */
export const DEFAULT_COLUMNS: readonly KeyColumn[] = [name, grants, status, lastUsed, expires];
/** What programs read: the order is part of the public interface. */
export const ALL_COLUMNS: readonly KeyColumn[] = [
  name,
  status,
  roles,
  permissions,
  prefix,
  created,
  expires,
  lastUsed,
  uses,
  rotation,
];
/** What can be picked. */
const PICKABLE = [...ALL_COLUMNS, grants, unknownGrants, limits, allowFrom, id, description];

/** The names of all columns that can be picked. */
export const COLUMN_NAMES: readonly string[] = PICKABLE.map((column) => column.name);

/** The columns of these names, each once; case and the form of word breaks don't matter. @throws CliError USAGE */
export function pickColumns(names: readonly string[]): KeyColumn[] {
  return [...new Set(names.map(pick))].map((column) => ({ ...column, least: 1 }));
}

function pick(text: string): KeyColumn {
  const wanted = formOf(text);
  const found = PICKABLE.find((column) => formOf(column.name) === wanted);
  if (found) return found;
  const [first] = nearest(
    text.trim(),
    COLUMN_NAMES.map((known) => known.toUpperCase()),
    1,
  );
  const remedy = first ? `Did you mean ${first.toLowerCase()}?` : `The columns are ${listOf(COLUMN_NAMES)}.`;
  throw new CliError('USAGE', `"${printable(text)}" is not a column of the list. ${remedy}`);
}

function formOf(text: string): string {
  return text.toLowerCase().replaceAll(/[\s_-]/g, '');
}

function column(
  name: string,
  value: (key: KeyJson) => KeyJson[keyof KeyJson],
  rest: Omit<Column, 'title'> & Pick<KeyColumn, 'shown'> = {},
): KeyColumn {
  const title = name.toUpperCase().replace('-', ' ');
  return { name, title, text: (key) => fieldText(value(key)), ...rest };
}

/** A column of grants; a terminal shows which of them are unknown. */
function grantColumn(name: string, grantsOf: (key: KeyJson) => string[]): KeyColumn {
  const shown = (key: KeyJson) =>
    fieldText(grantsOf(key).map((grant) => (key.unknownGrants.includes(grant) ? `${grant} (unknown)` : grant)));
  return column(name, grantsOf, { shown, least: TEXT });
}

/** A column of times, which programs read in RFC 3339 format. */
function time(name: string, value: (key: KeyJson) => string | null, leaves?: number): KeyColumn {
  const shown = (key: KeyJson) => {
    const at = value(key);
    return at === null ? 'never' : relativeTime(Date.parse(at));
  };
  return column(name, value, { shown, ...(leaves !== undefined && { leaves }) });
}
