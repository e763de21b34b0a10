import { assertValid, KeysError } from '../basics/index.ts';
import { type ApiKey, expiryOf, requireWhole, USAGE, validateExpiry } from '../key/index.ts';
import { KEY_LISTS } from '../lists/index.ts';
import type { KeyRepository } from '../repository/index.ts';
import { type ChangedKey, type Place, requireToUpdate, type Transaction } from './transaction.ts';
import { planSwitch, requireChange, requireToDelete } from './update.ts';

/** A change of many keys: each only loses by it, so that none is enabled, or ends later. */
interface ManyChange {
  readonly what: 'DISABLE' | 'EXPIRE' | 'DELETE';
  /** When they are to end, in milliseconds since 1970; for EXPIRE alone. Those that end earlier stay as they are. */
  readonly expiresAt: number | null;
}

/** The same, as it is asked for. */
export interface ManyChangeRequest {
  readonly what: ManyChange['what'];
  /** For EXPIRE: an RFC 3339 date and time. */
  readonly expiresAt?: string | null | undefined;
}

/** Parses a change of many keys. @throws ValidationError; KeysError INPUT_INVALID */
export function readManyChange({ what, expiresAt }: ManyChangeRequest, now: number): ManyChange {
  if ((what === 'EXPIRE') !== (expiresAt != null))
    throw new KeysError('INPUT_INVALID', 'Say when the keys are to expire, and only if they are to.');
  if (what !== 'EXPIRE') return { what, expiresAt: null };
  const request = { expiresAt: expiresAt! };
  assertValid(validateExpiry(request, now));
  return { what, expiresAt: expiryOf(request, now)! };
}

/** Whether a key would be another one afterwards. */
export function isChangedBy({ disabledAt, expiresAt }: ApiKey, change: ManyChange): boolean {
  if (change.what === 'DISABLE') return disabledAt === null;
  return change.what === 'DELETE' || expiresAt === null || expiresAt > change.expiresAt!;
}

/** Refuses a change that the caller may not make. @throws KeysError STORE_CORRUPT, POLICY_VIOLATED; ForbiddenError */
export async function requireToChangeBy(place: Place, key: ApiKey, change: ManyChange): Promise<void> {
  if (change.what === 'DELETE') return requireToDelete(place, [key]);
  requireToUpdate(place, [key]);
  requireWhole(key);
  if (change.what === 'DISABLE') await planSwitch(place, key, false);
  else await requireChange(place, key, { ...key, expiresAt: change.expiresAt });
}

/**
 * Disables keys, or lets them end earlier: all of them, or none.
 * @returns those that were changed
 * @throws KeysError NOT_FOUND, POLICY_VIOLATED; ForbiddenError
 */
export async function changeKeys(
  transaction: Transaction,
  ids: readonly string[],
  change: ManyChange,
): Promise<ChangedKey[]> {
  const changed: ChangedKey[] = [];
  for (const id of new Set(ids)) {
    const before = await transaction.findToChange(id);
    if (!isChangedBy(before, change)) continue;
    await requireToChangeBy(transaction, before, change);
    const after =
      change.what === 'EXPIRE'
        ? { ...before, expiresAt: change.expiresAt }
        : { ...before, disabledAt: transaction.now };
    changed.push(await transaction.change(before, after, change.what === 'EXPIRE' ? 'UPDATE' : 'DISABLE'));
  }
  return changed;
}

/** How many keys a change of several ones concerns, and when one of them was last used. */
export interface Reach {
  /** They and all their child keys, each counted once. */
  readonly keys: number;
  /** In milliseconds since 1970; null if none ever was. */
  readonly lastUsedAt: number | null;
}

/** How far a change of keys reaches. @throws KeysError STORE_… */
export async function reachOf(repository: KeyRepository, ids: readonly string[]): Promise<Reach> {
  if (ids.length === 0) return { keys: 0, lastUsedAt: null };
  const { byKey, total } = await repository.port(KEY_LISTS).branches(ids);
  const own = await repository.port(USAGE).totals(ids);
  const uses = [...own.values(), ...byKey.values()].flatMap(({ lastUsedAt }) => lastUsedAt ?? []);
  return { keys: total, lastUsedAt: uses.length > 0 ? uses.reduce((one, other) => Math.max(one, other)) : null };
}
