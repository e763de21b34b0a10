import type { ActivityWriters } from '../keys/authentication/index.ts';
import { NO_LOG, type Log } from '../log.ts';
import type { Store } from '../store/index.ts';
import { activityReports } from './activity-reports.ts';
import { EdgeCopy, type EdgeCopyOptions } from './edge-copy.ts';
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
  readonly tableBytes: number;
}

/** The keys of an origin as a store, in which nothing can be changed. */
export interface EdgeStore extends Omit<Store, 'notices'> {
  /** Where uses of keys are reported. */
  readonly activityWriters: ActivityWriters;
  state(): EdgeState;
  /** Since how many milliseconds the lease has ended, while it answers all the same; undefined within its lease. */
  staleMs(): number | undefined;
}

/** What an edge does without its origin. */
interface EdgeStoreOptions {
  /** For how long beyond its lease it answers, in milliseconds. */
  readonly graceMs?: number | undefined;
  /** The path of a copy of the keys, by which it does so after a start as well; see `readCopyFile`. */
  readonly copyFile?: string | undefined;
  readonly clocks?: EdgeCopyOptions['clocks'];
  readonly idleMs?: FollowerOptions['idleMs'];
  readonly log?: Log | undefined;
}

/**
 * Opens the keys of an origin, once they are there and may be used.
 * @throws KeysError UNAUTHENTICATED, FORBIDDEN, SERVER_INCOMPATIBLE if the origin refuses
 */
export async function openEdgeStore(
  source: FeedSource,
  { graceMs = 0, copyFile: path, clocks, idleMs, log = NO_LOG }: EdgeStoreOptions = {},
): Promise<EdgeStore> {
  const copy =
    path === undefined ? undefined : new EdgeCopy({ path, token: () => source.token(), graceMs, clocks, log });
  const follower = new Follower({ source, graceMs, idleMs, copy, log });
  const close = async () => {
    await follower.close();
    source.close();
  };
  try {
    await follower.start();
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
      tableBytes: follower.table.memoryBytes,
    }),
    staleMs: () => {
      const { leaseMs } = follower;
      return leaseMs <= 0 && follower.mayAnswer ? -leaseMs : undefined;
    },
    close,
  };
}

const UNITS = { ms: 1, s: 1000, m: 60_000 } as const;

/** For how long an edge may ask to answer, and for how long it may go on after that, in milliseconds. */
const BOUNDS = {
  maxStale: { usual: '1s', least: 100, most: 60_000, range: '100ms to 60s' },
  grace: { usual: '0s', least: 0, most: 3_600_000, range: '0s to 60m' },
} as const;

/** Reads such a time. @returns milliseconds; or what else it must be, where it is none */
export function readEdgeTime(
  which: keyof typeof BOUNDS,
  text: string = BOUNDS[which].usual,
): number | { readonly refusal: string } {
  const { least, most, range } = BOUNDS[which];
  const [, count, unit] = /^(\d{1,9})(ms|s|m)$/.exec(text.trim()) ?? [];
  const time = count === undefined ? Number.NaN : Number(count) * UNITS[unit as keyof typeof UNITS];
  return time >= least && time <= most ? time : { refusal: `Give a time from ${range}.` };
}
