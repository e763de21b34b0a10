import { KeysError } from '../keys/errors.ts';
import type { NoticeStore } from '../keys/notices/notice-store.ts';
import type { KeyRepository, StoreKind } from '../keys/repository.ts';

/** The error for a store that does not exist. */
export function missingStore(location: string): KeysError {
  return new KeysError('STORE_UNAVAILABLE', `The key store ${location} does not exist. Check the path.`);
}

/** The repository of a store that does not exist, for a dry run: it holds no keys, and takes none. */
export function emptyRepository(location: string, kind: StoreKind): KeyRepository {
  const none = async () => [];
  const nothing = async () => undefined;
  const missing = () => missingStore(location);
  return {
    kind,
    findById: nothing,
    findByName: nothing,
    findBy: none,
    findByDigests: none,
    findConfusable: none,
    countLive: async () => 0,
    findInUse: async () => new Set(),
    findDisabledByPolicy: async () => new Set(),
    findManaged: none,
    findAncestors: async () => new Map(),
    findWithDescendants: none,
    findByDigest: nothing,
    list: none,
    listCreatedBy: none,
    count: async () => ({ counts: { ACTIVE: 0, DISABLED: 0, EXPIRED: 0 }, nextExpiry: null }),
    findUsage: async () => new Map(),
    findPeriodUsage: none,
    findUsedPermissions: async (ids) => new Map(ids.map((id) => [id, new Map()])),
    auditLog: { key: undefined, find: none, head: nothing, start: nothing, lastBefore: nothing, findLost: none },
    consents: { find: nothing, listOpen: none, clientOf: nothing },
    sessions: { find: nothing },
    effects: { by: none, withSecrets: none, on: none, actorsNamed: none },
    revision: () => undefined,
    keysChangedSince: () => 'any',
    watchHearing: () => {},
    latestTime: async () => 0,
    stage: () => Promise.reject(missing()),
    clearStaged: () => Promise.reject(missing()),
    write: () => Promise.reject(missing()),
    hasSearchIndex: async () => true,
    check: () => Promise.reject(missing()),
  };
}

/** The notices of a store that does not exist. */
export function emptyNotices(location: string): NoticeStore {
  const missing = () => Promise.reject(missingStore(location));
  return {
    withLease: missing,
    release: missing,
    isFree: missing,
    behind: missing,
    countWaiting: async () => 0,
    due: async () => [],
    findRefused: async () => [],
    status: async () => undefined,
    forgetGone: missing,
  };
}
