import { type KeyColumn, keyJson, pickColumns } from '../../../cli/views/key-view.ts';
import { kebab } from '../../../keys/added/index.ts';
import { printable } from '../../../keys/basics/index.ts';
import { fieldsOf, type FieldTable, labelFields, restrictionFields, textOf } from '../../../keys/key/index.ts';
import { withoutIncluded } from '../../../keys/permissions/index.ts';
import type { ReviewedKey } from '../reviewed-keys.ts';

/**
 * A key in a review, as JSON: a closed list of fields. `answering` is its owner, or that of a parent key; `creator` is
 * the name of the key that created it.
 */
export function reviewJson({ answering, creator, effectivePermissions, ...state }: ReviewedKey) {
  return { ...keyJson(state), answering, creator, effectivePermissions: withoutIncluded(effectivePermissions) };
}

type ReviewJson = ReturnType<typeof reviewJson>;

/** The columns of the table. */
export const REVIEW_COLUMNS: readonly (Omit<KeyColumn, 'text'> & { text(key: ReviewJson): string })[] = [
  ...pickColumns(['name']),
  { name: 'answering', title: 'OWNER', least: 8, text: ({ answering }) => printable(answering ?? '-', 200) },
  ...pickColumns(['tags', 'grants', 'status']),
  { name: 'creator', title: 'CREATOR', least: 8, text: ({ creator, createdBy }) => creator ?? createdBy ?? '-' },
  ...pickColumns(['last-used', 'expires']),
];

/** The labels without columns of their own in the CSV. */
const { owner: _owner, tags: _tags, ...otherLabels } = labelFields;

const CSV: Readonly<Record<string, (key: ReviewJson) => string | null>> = {
  name: ({ name }) => name,
  id: ({ id }) => id,
  status: ({ status }) => status,
  owner: ({ answering }) => answering,
  tags: ({ tags }) => tags.join(', '),
  roles: ({ roles }) => roles.join(' '),
  permissions: ({ permissions }) => permissions.join(' '),
  effective_permissions: ({ effectivePermissions }) => effectivePermissions.join(' '),
  ...cellsOf(restrictionFields, ' '),
  created_at: ({ createdAt }) => createdAt,
  created_by: ({ creator, createdBy }) => creator ?? createdBy,
  last_used_at: ({ lastUsedAt }) => lastUsedAt,
  uses: ({ uses }) => String(uses),
  expires_at: ({ expiresAt }) => expiresAt,
  disabled_at: ({ disabledAt }) => disabledAt,
  ...cellsOf(otherLabels, ', '),
};

function cellsOf(table: FieldTable, separator: string) {
  const cells = fieldsOf(table).map(([name]) => {
    const cell = (key: ReviewJson) => {
      const value = key[name];
      return value === null ? null : Array.isArray(value) ? value.join(separator) : textOf(value);
    };
    return [kebab(name).replaceAll('-', '_'), cell] as const;
  });
  return Object.fromEntries(cells);
}

/** The names of the columns of the CSV. */
export const CSV_HEAD = Object.keys(CSV);

export function csvCells(key: ReviewJson): (string | null)[] {
  return Object.values(CSV).map((cell) => cell(key));
}
