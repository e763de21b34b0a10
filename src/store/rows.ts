import type { ApiKey, StoredKey } from '../keys/api-key.ts';
import type { Grant, Role } from '../keys/catalog.ts';
import type { ApiKeyTable } from './tables.ts';

export function apiKeyOf(row: ApiKeyTable): ApiKey {
  return {
    id: row.id,
    name: row.name,
    description: row.description,
    roles: JSON.parse(row.roles) as Role[],
    permissions: JSON.parse(row.permissions) as Grant[],
    publicId: row.public_id,
    createdAt: Number(row.created_at),
    createdBy: row.created_by,
    expiresAt: row.expires_at === null ? null : Number(row.expires_at),
    disabledAt: row.disabled_at === null ? null : Number(row.disabled_at),
  };
}

export function storedKeyOf(row: ApiKeyTable): StoredKey {
  return { ...apiKeyOf(row), digest: row.digest };
}

export function rowOf(key: StoredKey): ApiKeyTable {
  return {
    id: key.id,
    name: key.name,
    description: key.description,
    roles: JSON.stringify(key.roles),
    permissions: JSON.stringify(key.permissions),
    public_id: key.publicId,
    digest: key.digest,
    created_at: key.createdAt,
    created_by: key.createdBy,
    expires_at: key.expiresAt,
    disabled_at: key.disabledAt,
    search_text: searchTextOf(key),
  };
}

/** Without differences of case and of form, so that a search is a search for a part. */
export function searchTextOf({ name, description }: Pick<ApiKey, 'name' | 'description'>): string {
  // Lower case alone would keep ß from SS apart, and ς from σ.
  return [name, description].filter(Boolean).join('\n').normalize('NFKC').toLowerCase().toUpperCase().normalize('NFKC');
}
