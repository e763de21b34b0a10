import { requireFor } from '../authorization/index.ts';
import { assertValid, checkOptions, checkSearchText, KeysError, noKeyWithId, yielding } from '../basics/index.ts';
import {
  type ApiKey,
  expiryOf,
  KEY_CHANGE_OPTIONS,
  type KeyChange,
  requireWhole,
  USE,
  validateChange,
  validateExpiry,
  withoutDigests,
} from '../key/index.ts';
import { KEY_LISTS } from '../lists/index.ts';
import type { KeyRepository } from '../repository/index.ts';
import { type ChangedKey, type Place, requireUnrefused, type Transaction } from './transaction.ts';
import { requireChange, updated } from './update.ts';

/** A requested change of many keys. */
export interface ManyChangeRequest {
  /** Disable or delete them, give them an earlier expiry (never a later one, and none is enabled), or change fields. */
  readonly what: 'DISABLE' | 'EXPIRE' | 'DELETE' | 'UPDATE';
  /** For EXPIRE: an RFC 3339 date and time. Keys that already expire earlier stay as they are. */
  readonly expiresAt?: string | null | undefined;
  /** For UPDATE: the new values, without a name, since names are unique. */
  readonly change?: KeyChange | undefined;
}

/** A change that deletes no keys. */
export type UndeletingChange = ManyChangeRequest & { readonly what: 'DISABLE' | 'EXPIRE' | 'UPDATE' };

/** A change of many keys, after parsing. */
interface ManyChange {
  readonly what: ManyChangeRequest['what'];
  /** The changed key; the same object if nothing changes or the key is deleted. */
  readonly after: <Key extends ApiKey>(before: Key) => Promise<Key>;
}

/** Parses a change of many keys. @throws ValidationError; KeysError INPUT_INVALID, OPTION_INVALID */
export function readManyChange(
  { what, expiresAt, change }: ManyChangeRequest,
  place: Pick<Place, 'catalog' | 'now' | 'listeners'>,
): ManyChange {
  const { catalog, now } = place;
  if ((what === 'EXPIRE') !== (expiresAt != null))
    throw new KeysError('INPUT_INVALID', 'Give an expiry for EXPIRE, and only for EXPIRE.');
  if ((what === 'UPDATE') !== (change !== undefined))
    throw new KeysError('INPUT_INVALID', 'Give the changes for UPDATE, and only for UPDATE.');
  if (what === 'DELETE') return { what, after: async (before) => before };
  if (what === 'DISABLE')
    return { what, after: async (before) => (before.disabledAt === null ? { ...before, disabledAt: now } : before) };
  if (what === 'EXPIRE') {
    const request = { expiresAt: expiresAt! };
    assertValid(validateExpiry(request, now));
    const end = expiryOf(request, now)!;
    return {
      what,
      after: async (before) => {
        if (before.expiresAt !== null && before.expiresAt <= end) return before;
        await requireUnrefused(place, before, ['expiresAt']);
        return { ...before, expiresAt: end };
      },
    };
  }
  checkOptions('keys.changeAll', change!, KEY_CHANGE_OPTIONS);
  if (change!.name !== undefined)
    throw new KeysError(
      'INPUT_INVALID',
      'Names are unique, so several keys cannot be renamed at once. Leave the new name out.',
    );
  assertValid(validateChange(change!, catalog, now));
  return { what, after: (before) => updated(before, change!, place) };
}

/**
 * Refuses a change that the caller is not allowed to make.
 * @throws ValidationError; KeysError STORE_CORRUPT, POLICY_VIOLATED, NOT_FOR_PEOPLE; ForbiddenError
 */
export async function requireToChangeBy(
  place: Place,
  key: ApiKey,
  what: ManyChangeRequest['what'],
  after: ApiKey,
): Promise<void> {
  if (what === 'DELETE') return requireFor(place.caller, 'DELETE', [key]);
  requireFor(place.caller, 'UPDATE', [key]);
  requireWhole(key);
  await requireChange(place, key, after);
}

/**
 * Changes keys without deleting them: all of them, or none.
 * @returns the changed ones
 * @throws ValidationError; KeysError NOT_FOUND, POLICY_VIOLATED, NOT_FOR_PEOPLE; ForbiddenError
 */
export async function changeKeys(
  transaction: Transaction,
  ids: readonly string[],
  change: ManyChange,
): Promise<ChangedKey[]> {
  for (const id of ids) checkSearchText(id);
  const found = new Map((await transaction.find.findBy('id', [...new Set(ids)])).map((key) => [key.id, key]));
  const missing = ids.find((id) => !found.has(id));
  if (missing !== undefined) throw noKeyWithId(missing);
  const changes = [];
  for await (const before of yielding([...new Set(ids)].map((id) => found.get(id)!))) {
    requireFor(transaction.caller, 'UPDATE', [before]);
    const after = await change.after(before);
    if (after === before) continue;
    await requireToChangeBy(transaction, before, change.what, after);
    changes.push({ before, after });
  }
  const action = change.what === 'DISABLE' ? 'DISABLE' : 'UPDATE';
  await transaction.changeAll(changes.map(({ before, after }) => ({ before, steps: [{ after, action }] })));
  return changes.map(({ before, after }) => ({ before: withoutDigests(before), after: withoutDigests(after) }));
}

/** How many keys a change affects, and when one of them was last used. */
export interface Reach {
  /** The changed keys and all their child keys, each counted once. */
  readonly keys: number;
  /** In milliseconds since 1970; null if none ever was. */
  readonly lastUsedAt: number | null;
}

/** The reach of a change to these keys. @throws KeysError STORE_… */
export async function reachOf(repository: KeyRepository, ids: readonly string[]): Promise<Reach> {
  if (ids.length === 0) return { keys: 0, lastUsedAt: null };
  const { byKey, total } = await repository.port(KEY_LISTS).branches(ids);
  const own = await repository.port(USE).totals(ids);
  const uses = [...own.values(), ...byKey.values()].flatMap(({ lastUsedAt }) => lastUsedAt ?? []);
  return { keys: total, lastUsedAt: uses.length > 0 ? uses.reduce((one, other) => Math.max(one, other)) : null };
}
