import type { NoticeStore } from '../keys/notices/notice-store.ts';
import type { Port } from '../keys/port.ts';
import type { KeyRepository, StoreKind } from '../keys/repository.ts';
import { missingStore } from './errors.ts';
import { portIn } from './ports.ts';

/** The repository of a store that does not exist, for a dry run: it holds no keys, and takes none. */
export function emptyRepository(location: string, kind: StoreKind): KeyRepository {
  const none = async () => [];
  const nothing = async () => undefined;
  const missing = () => missingStore(location);
  return {
    kind,
    port: <Reader>(wanted: Port<Reader, Reader>) => portIn(wanted).empty(location) as Reader,
    findById: nothing,
    findByName: nothing,
    findBy: none,
    findByDigests: none,
    findConfusable: none,
    countLive: async () => 0,
    findManaged: none,
    findAncestors: async () => new Map(),
    findWithDescendants: none,
    findByDigest: nothing,
    list: none,
    listCreatedBy: none,
    count: async () => ({ counts: { ACTIVE: 0, DISABLED: 0, EXPIRED: 0 }, nextExpiry: null }),
    auditLog: { key: undefined, find: none, head: nothing, start: nothing, lastBefore: nothing, findLost: none },
    revision: () => undefined,
    keysChangedSince: () => 'any',
    watchHearing: () => {},
    latestTime: async () => 0,
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
