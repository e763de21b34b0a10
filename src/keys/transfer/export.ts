import type { StoredKey } from '../key/api-key.ts';
import { hexOf } from '../secret/digest.ts';
import { MAX_PAGE_SIZE } from '../page.ts';
import type { KeyRepository, ListPosition } from '../repository.ts';
import { isInProgress } from '../key/rotation.ts';
import { prefixOf } from '../secret/secret.ts';
import { formatTime } from '../time.ts';

/** A key as it can be imported again: a closed list of fields. Times are by RFC 3339, in UTC. */
export interface ExportedKey {
  id: string;
  name: string;
  description: string | null;
  roles: string[];
  permissions: string[];
  prefix: string;
  createdAt: string;
  createdBy: string | null;
  expiresAt: string | null;
  disabled: boolean;
  /** The SHA-256 of its secret in hex, where it was asked for. */
  sha256?: string;
}

export interface ExportedPage {
  keys: ExportedKey[];
  /** How many of them have a secret before that still works. It is not exported. */
  rotating: number;
}

export interface ExportOptions {
  /** Whether the digests of the secrets are exported, too. */
  withDigests: boolean;
}

/**
 * All keys, page by page: none before the one that created it, and otherwise the oldest first. What is created or deleted
 * meanwhile may be among them or not.
 */
export async function* exportKeys(
  repository: KeyRepository,
  { withDigests }: ExportOptions,
  now: number,
): AsyncGenerator<ExportedPage> {
  // Each page is followed by what its keys created, before the next page of the keys beside them.
  const places: { creators: string[] | null; after?: ListPosition }[] = [{ creators: null }];
  for (let place = places.pop(); place; place = places.pop()) {
    const { creators, after } = place;
    const keys = await repository.listCreatedBy(creators, { limit: MAX_PAGE_SIZE, after });
    const last = keys.at(-1);
    if (!last) continue;
    yield {
      keys: keys.map((key) => exportedKeyOf(key, withDigests)),
      rotating: keys.filter(({ rotation }) => isInProgress(rotation, now)).length,
    };
    if (keys.length === MAX_PAGE_SIZE) places.push({ creators, after: { createdAt: last.createdAt, id: last.id } });
    places.push({ creators: keys.map(({ id }) => id) });
  }
}

function exportedKeyOf(key: StoredKey, withDigests: boolean): ExportedKey {
  return {
    id: key.id,
    name: key.name,
    description: key.description,
    roles: key.roles,
    permissions: key.permissions,
    prefix: prefixOf(key.publicId),
    createdAt: formatTime(key.createdAt),
    createdBy: key.createdBy,
    expiresAt: key.expiresAt === null ? null : formatTime(key.expiresAt),
    disabled: key.disabledAt !== null,
    ...(withDigests && { sha256: hexOf(key.digest) }),
  };
}
