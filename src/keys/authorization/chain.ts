import type { ApiKey } from '../key/api-key.ts';
import { type Status, statusOf } from '../key/status.ts';
import type { Limit } from '../limit.ts';
import { ALL_ACCESS } from '../permissions/built-in.ts';
import type { Catalog, Permission, Role } from '../permissions/catalog.ts';
import { PermissionSet, splitPermission } from '../permissions/permission-set.ts';
import type { KeyFinder } from '../repository.ts';

/** The maximum number of keys in a chain. */
export const MAX_CHAIN_LENGTH = 16;

/** What the status of a key depends on: its own fields, and the key that created it. */
export type Link = Pick<ApiKey, 'id' | 'createdBy' | 'expiresAt' | 'disabledAt'>;

/**
 * A key, the key that created it, and so on, up to a key that the operator created. What a key may do is what all keys
 * of its chain may do, and it is accepted only while all of them are.
 */
export interface Chain {
  /** The key itself first, then its ancestors. */
  readonly keys: readonly [ApiKey, ...ApiKey[]];
  /** Whether it goes all the way up. A chain that is too long, or has lost a link, allows nothing. */
  readonly isComplete: boolean;
}

/** What an ancestor takes away from a key. */
export interface AncestorLimit {
  ancestor: ApiKey;
  /** The ancestor's own status: unless ACTIVE, the key is not accepted. */
  status: Status;
  /** The ancestor's expiry, if that comes before the key's own; otherwise null. */
  expiresAt: number | null;
  /** The permissions that the key would have without this ancestor and its ancestors. */
  permissions: Permission[];
  /** The ancestor's own limits: the requests of the key count against them. */
  limits: readonly Limit[];
  /** The networks that the ancestor, and so the key, may be used from; null for anywhere. */
  allowFrom: readonly string[] | null;
}

/** Reads the chains of keys, in their order. @throws KeysError STORE_… */
export async function findChains(find: Pick<KeyFinder, 'findAncestors'>, keys: readonly ApiKey[]): Promise<Chain[]> {
  const creators = new Set(keys.flatMap(({ createdBy }) => createdBy ?? []));
  const ancestors = creators.size > 0 ? await find.findAncestors([...creators]) : new Map<string, ApiKey>();
  return keys.map((key) => chainOf(key, ancestors));
}

/** Reads the chain of a key. @throws KeysError STORE_… */
export async function findChain(find: Pick<KeyFinder, 'findAncestors'>, key: ApiKey): Promise<Chain> {
  return (await findChains(find, [key]))[0]!;
}

/** The chain of a key, all of whose ancestors are known. */
export function chainOf<Key extends Link>(key: Key, ancestors: ReadonlyMap<string, Key>) {
  const keys: [Key, ...Key[]] = [key];
  for (let link = key; link.createdBy !== null;) {
    const creator = ancestors.get(link.createdBy);
    if (!creator || keys.length === MAX_CHAIN_LENGTH) return { keys, isComplete: false };
    keys.push(creator);
    link = creator;
  }
  return { keys, isComplete: true };
}

/** The status of a key, which counts its ancestors: EXPIRED if one of them is, otherwise DISABLED if one of them is. */
export function chainStatus({ keys, isComplete }: { keys: readonly Link[]; isComplete: boolean }, now: number): Status {
  const statuses = new Set(keys.map((key) => statusOf(key, now)));
  if (statuses.has('EXPIRED')) return 'EXPIRED';
  return isComplete && !statuses.has('DISABLED') ? 'ACTIVE' : 'DISABLED';
}

/** When a key stops being accepted: the first expiry in its chain, in milliseconds since 1970; null for never. */
export function chainExpiry({ keys }: Chain): number | null {
  const ends = keys.flatMap(({ expiresAt }) => expiresAt ?? []);
  return ends.length > 0 ? Math.min(...ends) : null;
}

/** What a key may do: what its grants say, met with what its ancestors may do. */
export function chainAccess({ keys, isComplete }: Chain, catalog: Catalog): PermissionSet {
  if (!isComplete) return new PermissionSet();
  return keys.map((key) => PermissionSet.of(catalog, key)).reduce((access, other) => access.intersection(other));
}

/** Whether a key holds a role: all keys of its chain do, by the role itself or by one that includes it. */
export function chainHolds({ keys, isComplete }: Chain, role: Role, catalog: Pick<Catalog, 'includes'>): boolean {
  return isComplete && keys.every(({ roles }) => roles.some((held) => catalog.includes(held, role)));
}

/** Whether a key holds a permission that is unknown here: it allows nothing now, but would once it is declared. */
export function chainHoldsUnknown({ keys, isComplete }: Chain, permission: Permission): boolean {
  const [resource, action] = splitPermission(permission);
  const holds = ({ roles, permissions }: ApiKey) =>
    roles.includes(ALL_ACCESS) || new PermissionSet(permissions).has(resource, action);
  return isComplete && keys.every(holds);
}

/** What the ancestors of a key take away from it, the nearest first. Ancestors that take nothing away are left out. */
export function limitsOf({ keys }: Chain, catalog: Catalog, now: number): AncestorLimit[] {
  let [access, expiresAt] = [PermissionSet.of(catalog, keys[0]), keys[0].expiresAt];
  const limits: AncestorLimit[] = [];
  for (const ancestor of keys.slice(1)) {
    const next = access.intersection(PermissionSet.of(catalog, ancestor));
    const isEarlier = ancestor.expiresAt !== null && (expiresAt === null || ancestor.expiresAt < expiresAt);
    const limit = {
      ancestor,
      status: statusOf(ancestor, now),
      expiresAt: isEarlier ? ancestor.expiresAt : null,
      permissions: access.missingFrom(next),
      limits: ancestor.limits,
      allowFrom: ancestor.allowFrom,
    };
    const holds = limit.permissions.length + limit.limits.length > 0 || limit.allowFrom !== null;
    if (limit.status !== 'ACTIVE' || isEarlier || holds) limits.push(limit);
    if (isEarlier) expiresAt = ancestor.expiresAt;
    access = next;
  }
  return limits;
}
