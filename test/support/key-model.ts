/**
 * An independent model of key permissions, written from the documentation and without code of the program. A test
 * changes both, and then compares them.
 */

/** All permissions, each with those that it includes. */
const INCLUDED = {
  'ME:READ_OWN': [],
  'ONLINE:READ_ANY': [],
  'INFO:READ_ANY': [],
  'PERMISSION:READ_ANY': [],
  'LOGS:READ_ANY': [],
  'API_KEY:CREATE_ANY': ['API_KEY:CREATE_OWN'],
  'API_KEY:CREATE_OWN': [],
  'API_KEY:READ_ANY': ['API_KEY:READ_OWN'],
  'API_KEY:READ_OWN': [],
  'API_KEY:UPDATE_ANY': ['API_KEY:UPDATE_OWN'],
  'API_KEY:UPDATE_OWN': [],
  'API_KEY:DELETE_ANY': ['API_KEY:DELETE_OWN'],
  'API_KEY:DELETE_OWN': [],
} as const;
export const PERMISSIONS = Object.keys(INCLUDED) as (keyof typeof INCLUDED)[];
const GUEST = ['ME:READ_OWN', 'ONLINE:READ_ANY'];
const ROLES: Readonly<Record<string, readonly string[]>> = {
  ADMIN: PERMISSIONS,
  VIEWER: [...GUEST, 'INFO:READ_ANY', 'PERMISSION:READ_ANY', 'LOGS:READ_ANY'],
  GUEST,
};
/** For each role, the roles that include it. */
const HOLDERS: Readonly<Record<string, readonly string[]>> = {
  ADMIN: ['ADMIN'],
  VIEWER: ['ADMIN', 'VIEWER'],
  GUEST: ['ADMIN', 'VIEWER', 'GUEST'],
};

export interface Granted {
  roles: readonly string[];
  permissions: readonly string[];
}

/** A key. Times are in milliseconds since 1970. */
export interface ModelKey extends Granted {
  id: string;
  name: string;
  creator: string | null;
  ends: number | null;
  isDisabled: boolean;
  /** True if `apply` created it. */
  isManaged: boolean;
  secret: string;
  /** `ends` is null until the new secret is first used. */
  previous: { secret: string; ends: number | null; grace: number } | null;
}

/** The changed fields of a key. */
export type ModelChange = Partial<Pick<ModelKey, 'name' | 'roles' | 'permissions' | 'ends' | 'isDisabled'>>;

/** The permissions of these grants alone, without the limits of the creator's. */
function allowedBy({ roles, permissions }: Granted): Set<string> {
  const named = [...roles.flatMap((role) => ROLES[role]!), ...permissions];
  return new Set(named.flatMap((permission) => [permission, ...INCLUDED[permission as keyof typeof INCLUDED]]));
}

const holdsRole = (key: Granted, role: string) => key.roles.some((held) => HOLDERS[role]!.includes(held));
const isWithin = (some: Iterable<string>, all: ReadonlySet<string>) => [...some].every((one) => all.has(one));
const earlier = (...ends: (number | null)[]) => {
  const known = ends.filter((end) => end !== null);
  return known.length > 0 ? Math.min(...known) : null;
};
const isLater = (end: number | null, than: number | null) => than !== null && (end === null || end > than);

/** The keys of a store. */
export class KeyModel {
  now: number;
  keys = new Map<string, ModelKey>();

  constructor(now: number) {
    this.now = now;
  }

  /** The content of a backup. */
  copy(): ReadonlyMap<string, ModelKey> {
    return new Map([...this.keys].map(([id, key]) => [id, structuredClone(key)]));
  }

  /** Evaluates something at another time. */
  at<Said>(time: number, say: () => Said): Said {
    const { now } = this;
    this.now = time;
    try {
      return say();
    } finally {
      this.now = now;
    }
  }

  named(name: string): ModelKey | undefined {
    return [...this.keys.values()].find((key) => key.name === name);
  }

  /** The previous secret of a key while it works. With a grace of zero it never does, even if a clock is behind. */
  previousOf({ previous }: ModelKey): ModelKey['previous'] {
    const works = previous && (previous.ends === null || (previous.grace > 0 && this.now < previous.ends));
    return works ? previous : null;
  }

  /** A key, the one that created it, and so on. */
  chainOf(key: ModelKey): ModelKey[] {
    return [key, ...(key.creator === null ? [] : this.chainOf(this.keys.get(key.creator)!))];
  }

  /** The expiry of a key: the earliest in its chain. */
  endOf(key: ModelKey): number | null {
    return earlier(...this.chainOf(key).map(({ ends }) => ends));
  }

  /** The key that has a secret, if it is accepted. */
  acceptedBy(secret: string): { key: ModelKey; isCurrent: boolean } | undefined {
    for (const key of this.keys.values()) {
      const isCurrent = key.secret === secret;
      if (!isCurrent && this.previousOf(key)?.secret !== secret) continue;
      const isLive = (one: ModelKey) => !one.isDisabled && (one.ends === null || this.now < one.ends);
      return this.chainOf(key).every(isLive) ? { key, isCurrent } : undefined;
    }
    return undefined;
  }

  /** The permissions of an accepted key: those that every key of its chain has. */
  access(key: ModelKey): Set<string> {
    const sets = this.chainOf(key).map(allowedBy);
    return new Set(PERMISSIONS.filter((permission) => sets.every((set) => set.has(permission))));
  }

  /** The permissions of a secret; undefined if it is not accepted. */
  allows(secret: string): Set<string> | undefined {
    const accepted = this.acceptedBy(secret);
    return accepted && this.access(accepted.key);
  }

  /** Notes a use of a secret. If the previous secret waits for that, its grace begins. */
  use({ id, secret }: Pick<ModelKey, 'id' | 'secret'>): void {
    const key = this.keys.get(id);
    if (key?.secret === secret && key.previous?.ends === null) key.previous.ends = this.now + key.previous.grace;
  }

  /** A key and all its descendants. */
  familyOf(id: string): ModelKey[] {
    return [...this.keys.values()].filter((key) => this.chainOf(key).some((above) => above.id === id));
  }

  delete(ids: Iterable<string>): void {
    for (const id of ids) for (const key of this.familyOf(id)) this.keys.delete(key.id);
  }

  /**
   * Why this change is forbidden; undefined if it is allowed.
   * @param by the caller's secret
   * @param before undefined for a new key
   */
  whyNot(
    by: string,
    before: ModelKey | undefined,
    after: Omit<ModelKey, 'id' | 'secret'> | undefined,
  ): string | undefined {
    const actor = this.acceptedBy(by);
    if (!actor?.isCurrent) return 'it is shown a secret that is not accepted, or that changes nothing';
    const access = this.access(actor.key);
    const chain = this.chainOf(actor.key);
    const verb = !before ? 'CREATE' : after ? 'UPDATE' : 'DELETE';
    const isOwn = !before || before.id === actor.key.id || before.creator === actor.key.id;
    const needed = `API_KEY:${verb}_${isOwn ? 'OWN' : 'ANY'}`;
    if (!access.has(needed)) return `it lacks ${needed}`;
    if (!after) return undefined;
    const holds = ({ roles, permissions }: Granted) =>
      isWithin(allowedBy({ roles, permissions }), access) &&
      roles.every((role) => chain.every((key) => holdsRole(key, role)));
    const lost = before?.roles.filter((role) => !after.roles.includes(role)) ?? [];
    const had = before ? allowedBy({ roles: lost, permissions: before.permissions }) : new Set<string>();
    const added = {
      roles: after.roles.filter((role) => !before?.roles.includes(role)),
      permissions: after.permissions.filter((permission) => !had.has(permission)),
    };
    if (!holds(added)) return 'it does not hold what it grants';
    const end = this.endOf(actor.key);
    const outlives = end !== null && isLater(after.ends, end);
    const isExtended = !before || isLater(after.ends, before.ends);
    if (isExtended && outlives) return 'it ends before what it grants';
    if (!before) return undefined;
    const isNewSecret = after.previous !== before.previous;
    const isEnabled = before.isDisabled && !after.isDisabled;
    const isWidened = added.roles.length + added.permissions.length > 0 || isExtended || isEnabled || isNewSecret;
    const isAncestor = this.chainOf(before).some(({ id }) => id === actor.key.id);
    if (isWidened && !isAncestor && (!holds(after) || outlives)) return 'it makes usable what it may not do itself';
    return undefined;
  }

  /** Restores a backup. `wanted` selects the keys that come back even though they lost permissions since. */
  restore(backup: ReadonlyMap<string, ModelKey>, wanted: (key: ModelKey) => boolean): void {
    this.delete([...this.keys.keys()].filter((id) => !backup.has(id)));
    const restored = new Map<string, ModelKey>();
    for (const [id, then] of backup) {
      const now = this.keys.get(id);
      const key = now ? this.#restoredWithin(then, now) : undefined;
      if (wanted(then) && !(key && !key.keeps)) restored.set(id, this.#broughtBack(then, now));
      else if (key) restored.set(id, key.key);
    }
    this.keys = restored;
  }

  /** The key in the backup, reduced to what the current key has. */
  #restoredWithin(then: ModelKey, now: ModelKey): { key: ModelKey; keeps: boolean } {
    const [before, previous] = [this.previousOf(then), this.previousOf(now)];
    const key = { ...now, name: then.name, isManaged: then.isManaged };
    if (then.secret === now.secret && previous)
      key.previous =
        before?.secret === previous.secret ? { ...previous, ends: earlier(previous.ends, before.ends) } : null;
    const holdsAll =
      then.roles.every((role) => holdsRole(now, role)) &&
      isWithin(allowedBy({ roles: [], permissions: then.permissions }), allowedBy(now));
    const lostSecret = then.secret !== now.secret || (before && before.secret !== previous?.secret);
    if (holdsAll) Object.assign(key, { roles: then.roles, permissions: then.permissions });
    const isShorter = isLater(then.ends, now.ends);
    if (!isShorter) key.ends = then.ends;
    const isOff = now.isDisabled && !then.isDisabled;
    if (!isOff) key.isDisabled = then.isDisabled;
    return { key, keeps: !holdsAll || isShorter || isOff || Boolean(lostSecret) };
  }

  /** The key in the backup, with its current parent, and a grace no longer than one that has begun since. */
  #broughtBack(then: ModelKey, now: ModelKey | undefined): ModelKey {
    const isSame = then.previous && now?.previous?.secret === then.previous.secret;
    const ends = isSame ? { ends: earlier(then.previous!.ends, now.previous!.ends) } : {};
    const previous = then.previous && { ...then.previous, ...ends };
    return { ...then, previous, creator: now ? now.creator : then.creator };
  }
}
