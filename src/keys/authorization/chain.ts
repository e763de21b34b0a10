import { yielding, KeysError, MAX_PAGE_SIZE } from '../basics/index.ts';
import {
  type ApiKey,
  identityNamesOf,
  isUnrestricted,
  type KeyRestrictions,
  restrictionFields,
  type Status,
  statusOf,
  valuesOf,
  withoutDigests,
} from '../key/index.ts';
import {
  ALL_ACCESS,
  type Catalog,
  type Permission,
  PermissionSet,
  type Role,
  splitPermission,
} from '../permissions/index.ts';
import type { KeyFinder, KeyRepository } from '../repository/index.ts';

export const MAX_CHAIN_LENGTH = 16;

/** The fields that determine a key's status: its own, and the key that created it. */
export type Link = Pick<ApiKey, 'id' | 'createdBy' | 'expiresAt' | 'disabledAt'>;

/**
 * A key, the key that created it, and so on, up to a key that the operator created. A key is allowed only what all keys
 * of its chain are allowed, and it is accepted only while all of them are.
 */
export interface Chain {
  /** The key itself first, then its ancestors. */
  readonly keys: readonly [ApiKey, ...ApiKey[]];
  /** True if it goes all the way up. A chain that is too long, or has lost a link, allows nothing. */
  readonly isComplete: boolean;
}

/** The limits that an ancestor puts on a key. The ancestor's own restrictions apply to the key as well. */
export interface AncestorLimit extends KeyRestrictions {
  ancestor: ApiKey;
  /** The ancestor's own status: unless ACTIVE, the key is not accepted. */
  status: Status;
  /** The ancestor's expiry, if that comes before the key's own; otherwise null. */
  expiresAt: number | null;
  /** The permissions that the key would have without this ancestor and its ancestors. */
  permissions: Permission[];
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

/**
 * The one responsible for a key, and the key that names them: itself, or its nearest ancestor that has an owner or
 * stands for an identity; undefined if none does.
 */
export function findAnswering({ keys }: Chain): { answering: string; by: ApiKey } | undefined {
  for (const by of keys) {
    const answering = by.owner ?? identityNamesOf(by)[0];
    if (answering !== undefined) return { answering, by };
  }
  return undefined;
}

/** When a key stops being accepted: the first expiry in its chain, in milliseconds since 1970; null for never. */
export function chainExpiry({ keys }: Chain): number | null {
  const ends = keys.flatMap(({ expiresAt }) => expiresAt ?? []);
  return ends.length > 0 ? Math.min(...ends) : null;
}

/** The permissions of a key: those that its grants and all its ancestors have in common. */
export function chainAccess({ keys, isComplete }: Chain, catalog: Catalog): PermissionSet {
  if (!isComplete) return new PermissionSet();
  return keys.map((key) => PermissionSet.of(catalog, key)).reduce((access, other) => access.intersection(other));
}

/** True if a key holds a role: all keys of its chain do, by the role itself or by one that includes it. */
export function chainHolds({ keys, isComplete }: Chain, role: Role, catalog: Pick<Catalog, 'includes'>): boolean {
  return isComplete && keys.every(({ roles }) => roles.some((held) => catalog.includes(held, role)));
}

/** True if a key holds a permission that is not declared here. It allows nothing until it is declared. */
export function chainHoldsUnknown({ keys, isComplete }: Chain, permission: Permission): boolean {
  const [resource, action] = splitPermission(permission);
  const holds = ({ roles, permissions }: ApiKey) =>
    roles.includes(ALL_ACCESS) || new PermissionSet(permissions).has(resource, action);
  return isComplete && keys.every(holds);
}

/** The ancestors that limit a key, nearest first. */
export function limitsOf(chain: Chain, catalog: Catalog, now: number): AncestorLimit[] {
  return ancestorsOf(chain, catalog, now).filter(
    (limit) =>
      limit.status !== 'ACTIVE' || limit.expiresAt !== null || limit.permissions.length > 0 || !isUnrestricted(limit),
  );
}

/** The ancestors of a key, the nearest first, with how each limits it, if it does. */
export function ancestorsOf({ keys }: Chain, catalog: Catalog, now: number): AncestorLimit[] {
  let [access, expiresAt] = [PermissionSet.of(catalog, keys[0]), keys[0].expiresAt];
  const limits: AncestorLimit[] = [];
  for (const ancestor of keys.slice(1)) {
    const next = access.intersection(PermissionSet.of(catalog, ancestor));
    const isEarlier = ancestor.expiresAt !== null && (expiresAt === null || ancestor.expiresAt < expiresAt);
    limits.push({
      ancestor,
      status: statusOf(ancestor, now),
      expiresAt: isEarlier ? ancestor.expiresAt : null,
      permissions: access.missingFrom(next),
      ...valuesOf(restrictionFields, ancestor),
    });
    if (isEarlier) expiresAt = ancestor.expiresAt;
    access = next;
  }
  return limits;
}

/** The keys that a key created, the keys that these created, and so on. */
export interface Descendants {
  /** The nearest first. */
  keys: ApiKey[];
  /** True if some were left out. */
  hasMore: boolean;
}

/**
 * Finds the child keys of a key, generation by generation.
 * @param first the maximum number, from 1 to 500
 * @throws KeysError INPUT_INVALID, STORE_…
 */
export async function findDescendants(
  repository: Pick<KeyRepository, 'listCreatedBy'>,
  id: string,
  first: number,
): Promise<Descendants> {
  if (first < 1 || first > MAX_PAGE_SIZE)
    throw new KeysError('INPUT_INVALID', `"first" is ${first}; it can be 1 to ${MAX_PAGE_SIZE}.`);
  const found: ApiKey[] = [];
  // The list grows during the loop. One creator at a time: keys of several creators would have to be sorted.
  const creators = [id];
  for await (const creator of yielding(creators)) {
    const page = await repository.listCreatedBy([creator], { limit: first + 1 - found.length });
    found.push(...page.map(withoutDigests));
    if (found.length > first) break;
    creators.push(...page.map((key) => key.id));
  }
  return { keys: found.slice(0, first), hasMore: found.length > first };
}
