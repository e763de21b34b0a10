import type { ActivityWriters } from '../../keys/authentication/index.ts';
import { NO_LOG, type Log } from '../../log.ts';
import type { Store } from '../../store/index.ts';
import { activityReports } from './activity-reports.ts';
import { edgeRepository } from './edge-repository.ts';
import type { FeedSource } from './feed-source.ts';
import { Follower, type FollowerOptions } from './follower.ts';

/** How an edge is, for whoever watches it. */
export interface EdgeState {
  /** How long ago the origin was asked that has given the last lease, in seconds; 0 while nobody asks for keys. */
  readonly lagSeconds: number;
  /** For how long the lease still lasts, in seconds; below 0 if it has ended, and 0 while nobody asks for keys. */
  readonly leaseSeconds: number;
  readonly keys: number;
  /** Size of their rows. */
  readonly tableBytes: number;
}

/** The keys of an origin as a store, in which nothing can be changed. */
export interface EdgeStore extends Omit<Store, 'notices'> {
  /** Where uses of keys are reported. */
  readonly activityWriters: ActivityWriters;
  state(): EdgeState;
}

interface EdgeStoreOptions {
  /** How long all keys are waited for, in milliseconds: then it opens, and refuses until they are loaded. */
  readonly patienceMs?: number | undefined;
  readonly idleMs?: FollowerOptions['idleMs'];
  readonly log?: Log | undefined;
}

/**
 * Opens the keys of an origin, once they are loaded and may be used.
 * @throws KeysError UNAUTHENTICATED, FORBIDDEN, SERVER_INCOMPATIBLE if the origin refuses
 */
export async function openEdgeStore(
  source: FeedSource,
  { patienceMs, idleMs, log = NO_LOG }: EdgeStoreOptions = {},
): Promise<EdgeStore> {
  const follower = new Follower({ source, idleMs, log });
  const close = async () => {
    await follower.close();
    source.close();
  };
  try {
    await follower.start(patienceMs);
  } catch (error) {
    await close();
    throw error;
  }
  const { origin } = source;
  return {
    repository: edgeRepository(follower, origin),
    limits: {
      lease: async (requests) => (await source.lease(requests)).map((grant) => grant ?? undefined),
    },
    activityWriters: activityReports(source, log),
    location: origin,
    created: false,
    exists: true,
    schemaDifferences: async () => [],
    // oxlint-disable-next-line require-yield
    async *compact() {
      return null;
    },
    settingProblems: async () => [],
    state: () => ({
      lagSeconds: follower.isResting ? 0 : follower.lagMs / 1000,
      leaseSeconds: follower.isResting ? 0 : follower.leaseMs / 1000,
      keys: follower.table.size,
      tableBytes: follower.table.rowBytes,
    }),
    close,
  };
}

const UNITS = { ms: 1, s: 1000, m: 60_000 } as const;

/** Reads for how long an edge may answer without its origin. @returns milliseconds; or what else it must be */
export function readMaxStale(text = '1s'): number | { readonly refusal: string } {
  const [, count, unit] = /^(\d{1,9})(ms|s|m)$/.exec(text.trim()) ?? [];
  const time = count === undefined ? Number.NaN : Number(count) * UNITS[unit as keyof typeof UNITS];
  return time >= 100 && time <= 60_000 ? time : { refusal: 'Give a time from 100ms to 60s.' };
}
