import type { StoredKey } from '../key/api-key.ts';
import { requireWhole } from '../key/damage.ts';
import { toHex } from '../secret/digest.ts';
import { MAX_PAGE_SIZE } from '../page.ts';
import type { KeyRepository, ListPosition } from '../repository.ts';
import { isInProgress } from '../key/rotation.ts';
import { prefixOf } from '../secret/secret.ts';
import { formatTime } from '../time.ts';

/** A key in the form in which it can be imported: a closed list of fields. Times are in RFC 3339, in UTC. */
export interface ExportedKey {
  /** A UUID. */
  id: string;
  /** The name. */
  name: string;
  /** The description; null if there is none. */
  description: string | null;
  /** The granted roles. */
  roles: string[];
  /** The granted permissions, as `RESOURCE:ACTION`. */
  permissions: string[];
  /** Its limits, such as `100/m`. */
  limits: string[];
  /** The networks that it may be used from; null for anywhere. */
  allowFrom: string[] | null;
  /** `svc_<id>_…`, or `imported-<id>` for a secret in another format. */
  prefix: string;
  /** When it was created. */
  createdAt: string;
  /** The id of the key that created it; null if the operator did. */
  createdBy: string | null;
  /** When it expires; null if it never does. */
  expiresAt: string | null;
  /** Whether it is disabled. */
  disabled: boolean;
  /** The SHA-256 of its secret in hex; only with `withDigests`. */
  sha256?: string;
}

/** A page of exported keys. */
export interface ExportedPage {
  /** The keys. */
  keys: ExportedKey[];
  /** How many of them have a previous secret that still works, which is not exported. */
  rotating: number;
}

/** What to export. */
export interface ExportOptions {
  /** Whether to include the digests of the secrets. */
  withDigests: boolean;
}

/**
 * All keys, page by page: each after the key that created it, otherwise oldest first. Keys that are created or deleted
 * meanwhile may or may not be included.
 */
export async function* exportKeys(
  repository: KeyRepository,
  { withDigests }: ExportOptions,
  now: number,
): AsyncGenerator<ExportedPage> {
  // Depth first: the keys that a page's keys created come before the next page of their siblings.
  const pending: { creators: string[] | null; after?: ListPosition }[] = [{ creators: null }];
  for (let next = pending.pop(); next; next = pending.pop()) {
    const { creators, after } = next;
    const keys = await repository.listCreatedBy(creators, { limit: MAX_PAGE_SIZE, after });
    const last = keys.at(-1);
    if (!last) continue;
    yield {
      keys: keys.map((key) => exportedKeyOf(key, withDigests)),
      rotating: keys.filter(({ rotation }) => isInProgress(rotation, now)).length,
    };
    if (keys.length === MAX_PAGE_SIZE) pending.push({ creators, after: { createdAt: last.createdAt, id: last.id } });
    pending.push({ creators: keys.map(({ id }) => id) });
  }
}

function exportedKeyOf(key: StoredKey, withDigests: boolean): ExportedKey {
  requireWhole(key);
  return {
    id: key.id,
    name: key.name,
    description: key.description,
    roles: key.roles,
    permissions: key.permissions,
    limits: [...key.limits],
    allowFrom: key.allowFrom && [...key.allowFrom],
    prefix: prefixOf(key.publicId),
    createdAt: formatTime(key.createdAt),
    createdBy: key.createdBy,
    expiresAt: formatTime(key.expiresAt),
    disabled: key.disabledAt !== null,
    ...(withDigests && { sha256: toHex(key.digest) }),
  };
}
