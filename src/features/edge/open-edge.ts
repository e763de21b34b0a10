import type { ActivityWriters } from '../../keys/authentication/index.ts';
import { NO_LOG, type Log } from '../../log.ts';
import type { Store } from '../../store/index.ts';
import { activityReports } from './activity-reports.ts';
import { edgeRepository } from './edge-repository.ts';
import type { FeedSource } from './feed-source.ts';
import { Follower, type FollowerOptions } from './follower.ts';

/** State of an edge, for monitoring. */
export interface EdgeState {
  /** Seconds since the request that brought the last lease; 0 while no keys are requested. */
  readonly lagSeconds: number;
  /** Seconds left of the lease; below 0 if it has run out, and 0 while no keys are requested. */
  readonly leaseSeconds: number;
  readonly keys: number;
  /** Size of their rows. */
  readonly tableBytes: number;
}

/** The keys of an origin as a read-only store. */
export interface EdgeStore extends Store {
  /** Receivers of reports about the use of keys. */
  readonly activityWriters: ActivityWriters;
  state(): EdgeState;
}

interface EdgeStoreOptions {
  /** Time to wait for all keys, in milliseconds. It then opens anyway, and refuses requests until they are loaded. */
  readonly patienceMs?: number | undefined;
  readonly idleMs?: FollowerOptions['idleMs'];
  readonly log?: Log | undefined;
}

/**
 * Opens the keys of an origin once they are loaded.
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

/** Reads the time that an edge can answer without its origin. @returns milliseconds, or the problem */
export function readMaxStale(text = '1s'): number | { readonly refusal: string } {
  const [, count, unit] = /^(\d{1,9})(ms|s|m)$/.exec(text.trim()) ?? [];
  const time = count === undefined ? Number.NaN : Number(count) * UNITS[unit as keyof typeof UNITS];
  return time >= 100 && time <= 60_000 ? time : { refusal: 'Give a time from 100ms to 60s.' };
}
