import type { ReviewedKey } from '../../keys/service/index.ts';
import { type KeyColumn, keyJson, type KeyJson, pickColumns } from './key-view.ts';

/** A key as it is reviewed, as JSON: a closed list of fields. */
interface ReviewJson extends KeyJson {
  /** Who answers for it: its owner, or that of a parent key. */
  answering: string | null;
  /** The name of the key that created it. */
  creator: string | null;
  /** What it may do, as far as its parent keys may; of `X_ANY`, which includes `X_OWN`, that alone. */
  effectivePermissions: string[];
}

export function reviewJson({ answering, creator, effectivePermissions, ...state }: ReviewedKey): ReviewJson {
  const all: ReadonlySet<string> = new Set(effectivePermissions);
  const included = (permission: string) => permission.endsWith('_OWN') && all.has(permission.replace(/_OWN$/, '_ANY'));
  const effective = effectivePermissions.filter((permission) => !included(permission));
  return { ...keyJson(state), answering, creator, effectivePermissions: effective };
}

/** The columns of the table. */
export const REVIEW_COLUMNS: readonly (Omit<KeyColumn, 'text'> & { text(key: ReviewJson): string })[] = [
  ...pickColumns(['name']),
  { name: 'answering', title: 'OWNER', least: 8, text: ({ answering }) => answering ?? '-' },
  ...pickColumns(['tags', 'grants', 'status']),
  { name: 'creator', title: 'CREATOR', least: 8, text: ({ creator, createdBy }) => creator ?? createdBy ?? '-' },
  ...pickColumns(['last-used', 'expires']),
];

const CSV = {
  name: ({ name }) => name,
  id: ({ id }) => id,
  status: ({ status }) => status,
  owner: ({ answering }) => answering,
  tags: ({ tags }) => tags.join(', '),
  roles: ({ roles }) => roles.join(' '),
  permissions: ({ permissions }) => permissions.join(' '),
  effective_permissions: ({ effectivePermissions }) => effectivePermissions.join(' '),
  limits: ({ limits }) => limits.join(' '),
  allow_from: ({ allowFrom }) => allowFrom?.join(' ') ?? null,
  created_at: ({ createdAt }) => createdAt,
  created_by: ({ creator, createdBy }) => creator ?? createdBy,
  last_used_at: ({ lastUsedAt }) => lastUsedAt,
  uses: ({ uses }) => String(uses),
  expires_at: ({ expiresAt }) => expiresAt,
  disabled_at: ({ disabledAt }) => disabledAt,
  description: ({ description }) => description,
} satisfies Record<string, (key: ReviewJson) => string | null>;

/** The names of the columns of the CSV. */
export const CSV_HEAD = Object.keys(CSV);

export function csvCells(key: ReviewJson): (string | null)[] {
  return Object.values(CSV).map((cell) => cell(key));
}
