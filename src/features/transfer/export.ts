import {
  budgetsOf,
  formatTime,
  isBudget,
  MAX_PAGE_SIZE,
  USED_LIMITS,
  type UsedLimit,
  splitLimit,
  yieldToEventLoop,
} from '../../keys/basics/index.ts';
import {
  type FieldValues,
  fixedFields,
  givenIn,
  identityFields,
  isInProgress,
  type KeyValues,
  labelFields,
  requireWhole,
  restrictionFields,
  type StoredKey,
} from '../../keys/key/index.ts';
import type { KeyRepository, ListPosition } from '../../keys/repository/index.ts';
import { isSecretlessId, prefixOf } from '../../keys/secret/index.ts';
import { toHex } from './digest.ts';

/** A key in the form in which it can be imported: a closed list of fields. Times are in RFC 3339, in UTC. */
export interface ExportedKey extends ExportedFields {
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
  /** Its limits, such as `100/m`; with `withDigests`, the rest of those that never refill. */
  limits: string[];
  /** Networks it can be used from; null for any. */
  allowFrom: string[] | null;
  /** The address that it is valid for alone; left out for wherever keys are. */
  audience?: string;
  /** `svc_<id>_…`, or `imported-<id>` for a secret in another format. */
  prefix: string;
  /** Creation time. */
  createdAt: string;
  /** The id of the key that created it; null if the operator did. */
  createdBy: string | null;
  /** Expiry; null for never. */
  expiresAt: string | null;
  /** Disabled; with `withDigests`, also if a budget is used up. */
  disabled: boolean;
  /** The SHA-256 of its secret in hex; only with `withDigests`. */
  sha256?: string;
}

/** A page of exported keys. */
export interface ExportedPage {
  /** The keys. */
  keys: ExportedKey[];
  /** Keys with a previous secret that still works, which is not exported. */
  rotating: number;
}

/** Options of an export. */
export interface ExportOptions {
  /** Includes the digests of secrets. */
  withDigests: boolean;
}

/**
 * All keys, page by page: each after the key that created it, otherwise oldest first. Keys that are created, deleted or
 * adopted meanwhile can be missing.
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
    const spenders = withDigests ? keys.filter(({ limits }) => limits.some(isBudget)).map(({ id }) => id) : [];
    const spent = spenders.length > 0 ? await repository.port(USED_LIMITS).find(spenders) : [];
    yield {
      keys: keys.map((key) => exportedKeyOf(key, withDigests, spent)),
      rotating: keys.filter(({ rotation }) => isInProgress(rotation, now)).length,
    };
    // A page stays in memory until others have had a turn.
    await yieldToEventLoop();
    if (keys.length === MAX_PAGE_SIZE) pending.push({ creators, after: { createdAt: last.createdAt, id: last.id } });
    pending.push({ creators: keys.map(({ id }) => id) });
  }
}

/** Exported separately: limits with the rest of budgets, and networks with null for any. */
const { limits: _limits, allowFrom: _allowFrom, ...otherRestrictions } = restrictionFields;

function exportedKeyOf(key: StoredKey, withDigests: boolean, spent: readonly UsedLimit[]): ExportedKey {
  requireWhole(key);
  const left = new Map(budgetsOf(key, spent).map((budget) => [budget.limit, budget.left]));
  return {
    id: key.id,
    name: key.name,
    description: key.description,
    ...givenIn(labelFields, key),
    roles: key.roles,
    permissions: key.permissions,
    limits: key.limits.map((limit) => (left.get(limit) ? `${left.get(limit)}/${splitLimit(limit).unit}` : limit)),
    allowFrom: key.allowFrom && [...key.allowFrom],
    ...givenIn(otherRestrictions, key),
    ...givenIn(fixedFields, key),
    prefix: prefixOf(key.publicId),
    createdAt: formatTime(key.createdAt),
    createdBy: key.createdBy,
    expiresAt: formatTime(key.expiresAt),
    disabled: key.disabledAt !== null || [...left.values()].includes(0),
    ...givenIn(identityFields, key),
    ...(withDigests && !isSecretlessId(key.publicId) && { sha256: toHex(key.digest) }),
  };
}

/** The other fields of an exported key. Those that it does not have are left out. */
export type ExportedFields = {
  [Name in Exclude<keyof FieldValues, 'description' | 'limits' | 'allowFrom'>]?: NonNullable<FieldValues[Name]>;
} & ExportedIdentity;

/** The identity that a key without a secret stands for. */
type ExportedIdentity = {
  [Name in keyof typeof identityFields]?: NonNullable<KeyValues[Name]>;
};
