import { randomUUID } from 'node:crypto';
import {
  type Actor,
  addedGrants,
  appliedLimits,
  type Chain,
  chainHolds,
  chainHoldsUnknown,
  endsLater,
  findChain,
  isLoosened,
  OPERATOR,
} from '../authorization/index.ts';
import {
  type ApiKey,
  areWithin,
  type Effect,
  type EffectFinder,
  EFFECTS,
  GIVEN_FIELDS,
  NO_LABELS,
  type NarrowerFields,
  type NewEffect,
  type Widening,
} from '../key/index.ts';
import { isBudget, type Limit, parseLimits, splitLimit, type WritePorts, yielding } from '../basics/index.ts';
import { type Catalog, type Permission, PermissionSet, type Role, splitPermission } from '../permissions/index.ts';
import type { KeyFinder } from '../repository/index.ts';

interface RecordingPlace extends WritePorts {
  readonly caller: Actor;
  readonly catalog: Catalog;
  readonly now: number;
  readonly find: KeyFinder;
}

type Grants = Pick<ApiKey, 'roles' | 'permissions'>;

/** The fields by which a key may do more, or be another's. */
const FIELDS = [
  ...GIVEN_FIELDS.filter((field) => !(field in NO_LABELS)),
  'publicId',
  'disabledAt',
  'createdBy',
] as const;

/**
 * Records what changes of keys bring about that outlives the key that makes them, and forgets what is in force no
 * longer. Of what a key does to its own child keys, nothing need be recorded: they are deleted with it. With a secret
 * that another key has issued, all of it is, since that is what the other key has brought about.
 * @param adoptions see `findAdoptions`
 * @param records whether the changes themselves are recorded; what they end is forgotten in any case
 */
export async function recordChanges(
  place: RecordingPlace,
  changes: readonly Change[],
  { adoptions, records }: { adoptions: readonly NewEffect[]; records: boolean },
): Promise<void> {
  const recorded = changes.filter(({ before, after }) => isRecorded(before, after));
  if (recorded.length === 0) return;
  const { caller } = place;
  const effects = place.port(EFFECTS);
  for (const { before, after } of recorded) if (before.name !== after.name) await effects.rename(after.id, after.name);
  const found = Map.groupBy(await effects.on(recorded.map(({ after }) => after.id)), ({ keyId }) => keyId);
  const recorder = caller !== OPERATOR && records ? caller : undefined;
  const isBorrowed = recorder !== undefined && (await isIssued(effects, recorder.apiKey));
  const added: NewEffect[] = [...adoptions];
  for await (const { before, after } of yielding(recorded)) {
    const known = found.get(after.id) ?? [];
    if (recorder && (isBorrowed || !(await isDescendant(place, before, recorder.apiKey))))
      added.push(...findEffects(place, recorder.chain, before, after, known));
  }
  await effects.insert(added);
  const over: Effect[] = [];
  for await (const { after } of yielding(recorded))
    over.push(...(found.get(after.id) ?? []).filter((effect) => !mayBeInForce(effect, after, place.catalog)));
  // What was done with a secret is still to be found; of a key that was adopted, its adoption leads there.
  const leading = over.flatMap(({ kind, secret }) => (secret === null || kind === 'CREATION' ? [] : secret));
  const led = new Set((await effects.withSecrets([...new Set(leading)])).map(({ bySecret }) => bySecret));
  await effects.delete(over.filter(({ kind, secret }) => kind === 'CREATION' || !led.has(secret)).map(({ id }) => id));
}

/** What a key was before a change, and is after it. */
interface Change {
  readonly before: ApiKey;
  readonly after: ApiKey;
}

/**
 * What is to be recorded of keys that are adopted. Call it before anything is written: of a parent and its child that
 * are adopted together, each is found where it stood.
 */
export async function findAdoptions(place: RecordingPlace, changes: readonly Change[]): Promise<NewEffect[]> {
  const adopted = changes.filter(({ before, after }) => before.createdBy !== null && after.createdBy === null);
  if (adopted.length === 0) return [];
  const found = Map.groupBy(await place.port(EFFECTS).on(adopted.map(({ before }) => before.id)), ({ keyId }) => keyId);
  const all: NewEffect[] = [];
  for await (const { before } of yielding(adopted))
    all.push(...(await adoptionsOf(place, before, found.get(before.id) ?? [])));
  return all;
}

/** Whether a change is one of what effects are about. */
function isRecorded(before: ApiKey, after: ApiKey): boolean {
  const isSame = FIELDS.every((field) => before[field] === after[field]);
  return !isSame || before.rotation?.previousPublicId !== after.rotation?.previousPublicId;
}

async function isDescendant({ find }: RecordingPlace, key: ApiKey, { id: above }: ApiKey): Promise<boolean> {
  if (key.id === above || key.createdBy === above) return true;
  if (key.createdBy === null) return false;
  return (await findChain(find, key)).keys.some(({ id }) => id === above);
}

/**
 * Records keys that a key has created with a secret that another one has issued: they are what that has brought about,
 * too. One that takes the place of the key itself has a secret by it.
 */
export async function recordCreations(place: RecordingPlace, keys: readonly ApiKey[]): Promise<void> {
  const { caller } = place;
  if (caller === OPERATOR || keys.length === 0) return;
  const { apiKey } = caller;
  const effects = place.port(EFFECTS);
  if (!(await isIssued(effects, apiKey))) return;
  await effects.insert(
    keys.map((key) =>
      newEffect(place, caller.chain, key.id, key.createdBy === apiKey.id ? 'CREATION' : 'SECRET', {
        secret: key.publicId,
      }),
    ),
  );
}

/** Whether the secret that a key has now was issued by another one. */
async function isIssued(effects: EffectFinder, { id, publicId }: Pick<ApiKey, 'id' | 'publicId'>): Promise<boolean> {
  return (await effects.on([id])).some(({ secret }) => secret === publicId);
}

function findEffects(
  place: RecordingPlace,
  chain: Chain,
  before: ApiKey,
  after: ApiKey,
  known: readonly Effect[],
): NewEffect[] {
  const [actor] = chain.keys;
  const make = (kind: Effect['kind'], what: Partial<Pick<Effect, 'secret' | 'widening'>> = {}) =>
    newEffect(place, chain, after.id, kind, what);
  const made: NewEffect[] = [];
  // A key that takes its own secret back leaves what was there before.
  const takesBack = ({ secret, actor: { id } }: Effect) => secret === before.publicId && id === actor.id;
  const isOther = before.publicId !== after.publicId;
  if (isOther && !(before.rotation?.previousPublicId === after.publicId && known.some(takesBack)))
    made.push(make('SECRET', { secret: after.publicId }));
  if (before.disabledAt !== null && after.disabledAt === null) made.push(make('ENABLING'));
  const widening = findWidening(before, after, place.catalog);
  if (widening) made.push(make('WIDENING', { widening }));
  return made;
}

/**
 * A key that is adopted, and its child keys, lose the parent key that may know their secrets: as long as they have
 * these, that has issued them.
 */
async function adoptionsOf(place: RecordingPlace, adopted: ApiKey, known: readonly Effect[]): Promise<NewEffect[]> {
  const { keys } = await findChain(place.find, adopted);
  const [creator, ...above] = keys.slice(1);
  if (!creator) return [];
  const creation = known.find(({ kind }) => kind === 'CREATION');
  const bySecret = creation?.bySecret ?? null;
  const family = await place.find.findWithDescendants([adopted.id]);
  return family.flatMap(({ id, publicId, rotation }) => {
    const secrets = new Set([publicId, ...(rotation ? [rotation.previousPublicId] : [])]);
    // What was done with the first one, too.
    if (creation?.secret && id === adopted.id) secrets.add(creation.secret);
    return Array.from(secrets, (secret) => {
      const chain = { keys: [creator, ...above], isComplete: true } as const;
      return { ...newEffect(place, chain, id, 'ADOPTION', { secret }), bySecret };
    });
  });
}

function newEffect(
  { now }: Pick<RecordingPlace, 'now'>,
  { keys: [actor, ...above] }: Chain,
  keyId: string,
  kind: Effect['kind'],
  { secret = null, widening = null }: Partial<Pick<Effect, 'secret' | 'widening'>> = {},
): NewEffect {
  const named = ({ id, name }: ApiKey) => ({ id, name });
  const by = { actor: named(actor), bySecret: actor.publicId, above: above.map(named) };
  return { id: randomUUID(), at: now, kind, ...by, keyId, secret, widening };
}

/** Whether something that was done to a key still counts, as far as the key as it is says. */
export function mayBeInForce({ kind, secret, widening }: Effect, key: ApiKey, catalog: Catalog): boolean {
  switch (kind) {
    case 'SECRET':
    case 'ADOPTION':
      return key.publicId === secret || key.rotation?.previousPublicId === secret;
    case 'ENABLING':
      return key.disabledAt === null;
    case 'CREATION':
      return key.createdBy !== null;
    default:
      return isStillWidened(widening!, key, catalog);
  }
}

/** How a change widens a key; undefined if it does not. */
function findWidening(before: ApiKey, after: ApiKey, catalog: Catalog): Widening | undefined {
  const grants = addedGrants(before, after, catalog);
  const isGranted = grants.roles.length + grants.permissions.length > 0;
  const fields: NarrowerFields = {
    ...(isGranted && { roles: before.roles, permissions: before.permissions }),
    ...(endsLater(before, after) && { expiresAt: before.expiresAt }),
    ...(isLoosened(before, { ...before, limits: after.limits }, catalog) && { limits: before.limits }),
    ...(isLoosened(before, { ...before, allowFrom: after.allowFrom }, catalog) && { allowFrom: before.allowFrom }),
  };
  if (Object.keys(fields).length === 0) return undefined;
  const unknown = after.permissions.filter((grant) => !catalog.knows(grant) && !before.permissions.includes(grant));
  const permissions = PermissionSet.of(catalog, after).missingFrom(PermissionSet.of(catalog, before));
  const added = isGranted ? { roles: grants.roles, permissions: [...permissions, ...unknown] } : EMPTY;
  return { before: fields, added };
}

const EMPTY: Grants = { roles: [], permissions: [] };

function isStillWidened({ before, added }: Widening, key: ApiKey, catalog: Catalog): boolean {
  const has = (permission: Permission) => {
    if (!catalog.knows(permission)) return key.permissions.includes(permission);
    return PermissionSet.of(catalog, key).has(...splitPermission(permission));
  };
  const hasGrants = added.roles.some((role) => key.roles.includes(role)) || added.permissions.some(has);
  const { expiresAt, limits, allowFrom } = before;
  return (
    (before.roles !== undefined && hasGrants) ||
    (expiresAt !== undefined && endsLater({ ...key, expiresAt }, key)) ||
    (limits !== undefined && isLoosened({ ...key, limits }, key, catalog)) ||
    (allowFrom !== undefined && isLoosened({ ...key, allowFrom }, key, catalog))
  );
}

/**
 * A key without what it got by a widening: with what it had before as well as now, in each field that was widened. A
 * key of which nothing would be left in one of them stays as it is there.
 * @returns the key, and whether it is to be disabled for want of something left
 */
export function withoutWidening<Key extends ApiKey>(
  key: Key,
  widening: Widening,
  catalog: Catalog,
): { key: Key; leavesNothing: boolean } {
  if (!isStillWidened(widening, key, catalog)) return { key, leavesNothing: false };
  const { roles, permissions, expiresAt, limits, allowFrom } = widening.before;
  let narrowed = key;
  let leavesNothing = false;
  if (roles && permissions) {
    const grants = commonGrants(key, { roles, permissions }, catalog);
    if (grants.roles.length + grants.permissions.length > 0) narrowed = { ...narrowed, ...grants };
    else leavesNothing = true;
  }
  if (expiresAt !== undefined && endsLater({ ...key, expiresAt }, key)) narrowed = { ...narrowed, expiresAt };
  if (limits) narrowed = { ...narrowed, limits: closestLimits(key.limits, limits, catalog) };
  if (allowFrom) {
    const networks = key.allowFrom ? commonNetworks(key.allowFrom, allowFrom) : allowFrom;
    if (networks.length > 0) narrowed = { ...narrowed, allowFrom: networks };
    else leavesNothing = true;
  }
  return { key: narrowed, leavesNothing };
}

/** What two keys are both granted, in few words. */
function commonGrants(now: Grants, before: Grants, catalog: Catalog): Grants {
  const holds = (holder: Grants, role: Role) => chainHolds(asChain(holder), role, catalog);
  const roles = [
    ...now.roles.filter((role) => holds(before, role)),
    ...before.roles.filter((role) => holds(now, role) && !now.roles.includes(role)),
  ];
  const common = PermissionSet.of(catalog, now).intersection(PermissionSet.of(catalog, before));
  const isCommon = (grant: Permission) =>
    catalog.knows(grant)
      ? new PermissionSet([grant]).missingFrom(common).length === 0
      : [now, before].every((each) => chainHoldsUnknown(asChain(each), grant));
  const permissions = [...new Set([...now.permissions, ...before.permissions])].filter(isCommon);
  const rest = common.missingFrom(PermissionSet.of(catalog, { roles, permissions }));
  return { roles, permissions: [...permissions, ...shortest(rest)] };
}

/** Without those that others include. */
function shortest(permissions: readonly Permission[]): Permission[] {
  const isIncluded = (one: Permission) =>
    permissions.some(
      (other) => other !== one && new PermissionSet([one]).missingFrom(new PermissionSet([other])).length === 0,
    );
  return permissions.filter((one) => !isIncluded(one));
}

function asChain(grants: Grants): Chain {
  return { keys: [grants as ApiKey], isComplete: true };
}

/** The limits that are within both, of each unit the lower. A key without its own has those that hold by default. */
function closestLimits(
  now: readonly Limit[],
  before: readonly Limit[],
  { defaultLimits }: Pick<Catalog, 'defaultLimits'>,
): readonly Limit[] {
  const lowest = new Map<string, Limit>();
  for (const limits of [now, before])
    for (const limit of appliedLimits(limits, defaultLimits)) {
      const { unit, count } = splitLimit(limit);
      const known = lowest.get(unit);
      if (!known || count < splitLimit(known).count) lowest.set(unit, limit);
    }
  const closest = parseLimits([...lowest.values()]).values;
  const budgets = closest.filter(isBudget);
  const isDefault =
    before.every(isBudget) && closest.join() === [...parseLimits(defaultLimits).values, ...budgets].join();
  return isDefault ? budgets : closest;
}

/** What lies in networks of both lists: two networks are apart, or one lies in the other. */
function commonNetworks(some: readonly string[], others: readonly string[]): string[] {
  const within = (inner: readonly string[], outer: readonly string[]) => inner.filter((one) => areWithin([one], outer));
  return [...new Set([...within(some, others), ...within(others, some)])];
}
