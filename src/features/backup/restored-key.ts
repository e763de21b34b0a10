import { chainHolds, chainHoldsUnknown, isWidened } from '../../keys/authorization/index.ts';
import type { Place } from '../../keys/changes/index.ts';
import {
  type ApiKey,
  isInProgress,
  labelFields,
  mapFields,
  namesOf,
  type Rotation,
  valuesOf,
  valuesOfMissing,
  wideningFields,
} from '../../keys/key/index.ts';
import { type Catalog, PermissionSet } from '../../keys/permissions/index.ts';

/** Aspects of a key that keep their present value if a backup would give the key more access. */
const KEPT = ['enabled', 'secret', 'grants', 'expiresAt', ...namesOf(wideningFields), 'damaged'] as const;
/** `secret` is that of a key rotated since the backup; `damaged` is a key whose row cannot be compared. */
export type KeptAspect = (typeof KEPT)[number];

/** The aspects, besides grants, in which a backup can give a key more access, each with its field. */
const ASPECTS = {
  enabled: 'disabledAt',
  expiresAt: 'expiresAt',
  ...mapFields(wideningFields, (_, name) => name),
} as const satisfies Partial<Record<KeptAspect, keyof ApiKey>>;

/** The context of the rules of a restore. */
export type RestoreContext = Pick<Place, 'catalog' | 'now'>;

/**
 * The restored state of a key that is in both the backup and the store: as in the backup, but never with more access
 * than now. Its creator and secret stay as they are now, and so does its previous secret, unless that had already
 * expired in the backup.
 * @returns the key, and the aspects that stay as they are now
 */
export function restoredKey<Key extends ApiKey>(
  backup: Key,
  present: Key,
  { catalog, now }: RestoreContext,
): { key: Key; kept: KeptAspect[] } {
  // The data of a damaged key is not reliable, even whether it was disabled.
  if (present.damaged) {
    const disabledAt = backup.disabledAt ?? now;
    const key = withoutMissing(backup, undefined);
    return { key: { ...key, createdBy: present.createdBy, disabledAt }, kept: ['damaged'] };
  }
  const { name, managed } = backup;
  let key: Key = { ...present, name, ...valuesOf(labelFields, backup), managed };
  if (backup.publicId === present.publicId) key = withinGrace(key, backup, now);
  const kept: KeptAspect[] = hasOtherSecret(backup, present, now) ? ['secret'] : [];
  if (holdsGrants(present, backup, catalog)) key = { ...key, roles: backup.roles, permissions: backup.permissions };
  else kept.push('grants');
  for (const [aspect, field] of Object.entries(ASPECTS) as [KeptAspect, keyof ApiKey][]) {
    const value = { [field]: backup[field] };
    if (isWidened(present, { ...present, ...value }, catalog)) kept.push(aspect);
    else key = { ...key, ...value };
  }
  return { key, kept: KEPT.filter((aspect) => kept.includes(aspect)) };
}

/**
 * A key that is brought back: as in the backup, with its secret of that time. A grace period that has started since
 * then is not extended, and an existing key keeps its present creator, which it may have lost since.
 */
export function broughtBackKey<Key extends ApiKey>(backup: Key, present: Key | undefined): Key {
  const rotation = shorterGrace(backup.rotation, present?.rotation ?? null);
  const key = withoutMissing(backup, present);
  return { ...key, rotation, createdBy: present ? present.createdBy : backup.createdBy };
}

/**
 * A key of a backup in which fields of missing plugins have their present values. Labels and log entries, which those
 * of the backup need, cannot be made without the plugin.
 */
function withoutMissing<Key extends ApiKey>(backup: Key, present: Key | undefined): Key {
  const missing = valuesOfMissing(backup.unknownFields);
  const known = Object.entries(backup.unknownFields ?? {}).filter(([id]) => !Object.hasOwn(missing, id));
  const values = { ...Object.fromEntries(known), ...valuesOfMissing(present?.unknownFields) };
  const { unknownFields: _, ...key } = backup;
  return { ...key, ...(Object.keys(values).length > 0 && { unknownFields: values }) } as Key;
}

/** A key whose previous secret, if it still works, expires no later than in the backup. */
function withinGrace<Key extends ApiKey>(key: Key, backup: Key, now: number): Key {
  const [previous] = previousOf(key.rotation, now);
  if (previous === undefined) return key;
  if (previousOf(backup.rotation, now).includes(previous))
    return { ...key, rotation: shorterGrace(key.rotation, backup.rotation) };
  return { ...key, rotation: null, ...('previousDigest' in key && { previousDigest: null }) };
}

/** True if a key holds all grants of another one, including those that are not declared now. */
function holdsGrants(holder: ApiKey, { roles, permissions }: ApiKey, catalog: Catalog): boolean {
  const chain = { keys: [holder], isComplete: true } as const;
  const unknown = permissions.filter((permission) => !catalog.knows(permission));
  return (
    roles.every((role) => chainHolds(chain, role, catalog)) &&
    unknown.every((permission) => chainHoldsUnknown(chain, permission)) &&
    new PermissionSet(permissions.filter((permission) => catalog.knows(permission))).missingFrom(
      PermissionSet.of(catalog, holder),
    ).length === 0
  );
}

/** True if a key was rotated since a backup, or has lost the previous secret that it had then. */
function hasOtherSecret(backup: ApiKey, present: ApiKey, now: number): boolean {
  if (backup.publicId !== present.publicId) return true;
  return previousOf(backup.rotation, now).some((publicId) => !previousOf(present.rotation, now).includes(publicId));
}

function previousOf(rotation: Rotation | null, now: number): string[] {
  return isInProgress(rotation, now) ? [rotation.previousPublicId] : [];
}

function shorterGrace(backup: Rotation | null, present: Rotation | null): Rotation | null {
  // A finished rotation has no grace period left, so the one in the backup applies.
  if (!backup || present?.previousPublicId !== backup.previousPublicId || present.grace === 0) return backup;
  const ends = [backup.previousEndsAt, present.previousEndsAt].filter((end) => end !== null);
  return { ...backup, previousEndsAt: ends.length > 0 ? Math.min(...ends) : null };
}

/** True if two states of a key differ. */
export function isChange(before: ApiKey, after: ApiKey): boolean {
  const fields = new Set([...Object.keys(before), ...Object.keys(after)]) as Set<keyof ApiKey>;
  return [...fields].some(
    (field) => before[field] !== after[field] && JSON.stringify(before[field]) !== JSON.stringify(after[field]),
  );
}
