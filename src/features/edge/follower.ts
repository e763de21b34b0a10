import { setTimeout as delay } from 'node:timers/promises';
import { isKeysError, KeysError, Wakeup } from '../../keys/basics/index.ts';
import type { NotificationReport } from '../../keys/repository/index.ts';
import type { Log } from '../../log.ts';
import { KeyChanges } from '../../store/index.ts';
import { FeedLines } from './feed-lines.ts';
import { FeedGone, type FeedSource } from './feed-source.ts';
import { KeyTable } from './key-table.ts';

/** Options for following an origin. */
export interface FollowerOptions {
  readonly source: FeedSource;
  /** After how many milliseconds without a question it rests. Default: 10 seconds. */
  readonly idleMs?: number | undefined;
  readonly log: Log;
}

/** Time before a snapshot is requested again, in milliseconds. */
const RETRY_MS = 1000;
const IDLE_MS = 10_000;
/** Maximum time to wait for a lease after a rest, unless it fails earlier. */
const ROUSE_MS = 5000;
/** Errors that a retry cannot fix without a change by a person. */
const REFUSALS = new Set(['UNAUTHENTICATED', 'FORBIDDEN', 'SERVER_INCOMPATIBLE', 'CONFIG_UNAVAILABLE']);

/**
 * The keys of the origin, valid for the lease it gave. Without requests for keys, it rests: it still receives changes,
 * and gets a lease with the next request.
 */
export class Follower {
  readonly #options: FollowerOptions;
  readonly #changes = new KeyChanges();
  readonly #closed = new AbortController();
  readonly #started = Promise.withResolvers<void>();
  #table = new KeyTable();
  /** Time of the request that brought the last lease, and the end of that lease: initially its own start. */
  #provenAt = performance.now();
  #leasedUntil = this.#provenAt;
  #isLeased = false;
  #wasLeased = false;
  /** Time of the last request for a key, by `performance.now`. */
  #askedAt = performance.now();
  /** Aborted once a lease is needed; undefined while there is one, or should be. */
  #rest: AbortController | undefined;
  readonly #settled = new Wakeup();
  #problem: unknown;
  #reported = '';
  #report: NotificationReport = () => {};
  #running: Promise<void> | undefined;

  constructor(options: FollowerOptions) {
    this.#options = options;
  }

  /**
   * Loads all keys and follows their changes. Resolves once it can answer, or after `patienceMs`: it then continues
   * loading, and answers only when it has all keys.
   * @throws KeysError UNAUTHENTICATED, FORBIDDEN, SERVER_INCOMPATIBLE if the origin refuses; CONFIG_UNAVAILABLE if a
   * file is missing here
   */
  async start(patienceMs = Infinity): Promise<void> {
    this.#running = this.#run().catch((error: unknown) => {
      if (!this.#closed.signal.aborted) this.#started.reject(error);
    });
    // Between two attempts, nothing else keeps the program alive.
    const waiting = setInterval(() => {}, RETRY_MS);
    const patience = patienceMs === Infinity ? undefined : setTimeout(() => this.#started.resolve(), patienceMs);
    try {
      await this.#started.promise;
    } finally {
      clearInterval(waiting);
      clearTimeout(patience);
    }
  }

  /** The keys. */
  get table(): KeyTable {
    return this.#table;
  }

  /** Milliseconds since the request that brought the last lease. */
  get lagMs(): number {
    return performance.now() - this.#provenAt;
  }

  /** For how many milliseconds the lease still lasts; below 0 if it has ended. */
  get leaseMs(): number {
    return this.#leasedUntil - performance.now();
  }

  /** It has no lease, because no keys are requested. */
  get isResting(): boolean {
    return this.#rest !== undefined && this.leaseMs <= 0;
  }

  /** It is allowed to answer, within its lease. */
  get mayAnswer(): boolean {
    return this.leaseMs > 0;
  }

  /** Checks whether it can answer, after getting a lease if it rests. */
  async rouse(): Promise<boolean> {
    if (!this.isResting) return this.mayAnswer;
    this.#rest?.abort();
    await this.#settled.wait(ROUSE_MS);
    return this.mayAnswer;
  }

  /** Like `rouse`, for a request for a key. */
  asked(): true | Promise<boolean> {
    this.#askedAt = performance.now();
    return this.mayAnswer || this.rouse();
  }

  /** See `KeyRepository.revision`: counts as a request for a key. */
  revision(): number | undefined {
    this.#askedAt = performance.now();
    return this.#leasedUntil > this.#askedAt ? this.#changes.revision : undefined;
  }

  /** See `KeyRepository.keysChangedSince`. */
  keysChangedSince(revision: number): readonly string[] | 'any' {
    return this.#changes.since(revision);
  }

  /** See `KeyRepository.watchHearing`. */
  watchHearing(report: NotificationReport): void {
    this.#report = report;
  }

  async close(): Promise<void> {
    this.#closed.abort();
    this.#endRest();
    await this.#running;
    const hasLease = this.leaseMs > 0;
    this.#leasedUntil = Number.NEGATIVE_INFINITY;
    if (hasLease) await this.#options.source.leave().catch(() => {});
  }

  async #run(): Promise<void> {
    const { signal } = this.#closed;
    while (!signal.aborted) {
      try {
        const cursor = await this.#load();
        await this.#options.source.follow(cursor, (lines, askedAt) => this.#take(lines, askedAt), {
          signal,
          failed: (error) => this.#failed(error),
          resting: () => this.#resting(),
        });
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof FeedGone) {
          this.#endRest();
          this.#options.log.warn({ reason: error.message }, 'the origin has other changes: all keys are loaded again');
          continue;
        }
        this.#failed(error);
        if (isKeysError(error) && REFUSALS.has(error.code)) this.#started.reject(error);
        await delay(RETRY_MS, undefined, { signal, ref: false }).catch(() => {});
      }
    }
  }

  /** Loads all keys, and takes them at once. @returns the cursor behind them */
  async #load(): Promise<string> {
    const { source, log } = this.#options;
    const [table, askedAt] = [new KeyTable(), performance.now()];
    const lines = new FeedLines(table);
    for await (const piece of source.snapshot(this.#closed.signal)) await lines.take(piece);
    const { cursor } = lines.finish();
    this.#table = table;
    // Any remembered key can have changed.
    this.#changes.addUnknown();
    log.info({ keys: table.size, durationMs: Math.round(performance.now() - askedAt) }, 'the keys were loaded');
    return cursor;
  }

  /** Takes changes, and the lease that comes with them. @returns the cursor behind them */
  async #take(bytes: Buffer, askedAt: number): Promise<string> {
    const lines = new FeedLines(this.#table, (id) => this.#changes.add([id]));
    await lines.take(bytes);
    const { cursor, leaseMs } = lines.finish();
    if (leaseMs > 0) {
      this.#provenAt = askedAt;
      this.#leasedUntil = Math.max(this.#leasedUntil, askedAt + leaseMs);
      if (this.#rest?.signal.aborted && this.leaseMs > 0) this.#endRest();
      this.#watchLease();
    }
    this.#reported = '';
    return cursor;
  }

  #watchLease(): void {
    if (this.#isLeased || this.leaseMs <= 0) return;
    this.#isLeased = true;
    this.#started.resolve();
    if (this.#wasLeased) this.#report(undefined);
    this.#wasLeased = true;
    const look = async () => {
      for (let leaseMs = this.leaseMs; leaseMs > 0 || this.#rest; { leaseMs } = this)
        await this.#settled.wait(leaseMs > 0 ? leaseMs : Infinity);
      this.#isLeased = false;
      if (!this.#closed.signal.aborted) this.#report(this.#problem instanceof Error ? this.#problem : stale());
    };
    void look();
  }

  /** See `Watching.resting`. */
  #resting(): AbortSignal | undefined {
    const { idleMs = IDLE_MS } = this.#options;
    if (this.#rest?.signal.aborted) return undefined;
    const isIdle = this.#isLeased && performance.now() - this.#askedAt >= idleMs;
    if (isIdle) return (this.#rest ??= new AbortController()).signal;
    // A request came in since: get a lease, as in `rouse`.
    if (this.isResting) this.#rest!.abort();
    else this.#endRest();
    return undefined;
  }

  #endRest(): void {
    this.#rest = undefined;
    this.#settled.wake();
  }

  #failed(error: unknown): void {
    this.#problem = error;
    this.#endRest();
    const isRefused = isKeysError(error) && REFUSALS.has(error.code);
    const message = error instanceof Error ? error.message : String(error);
    if (message === this.#reported) return;
    this.#reported = message;
    this.#options.log[isRefused ? 'error' : 'warn']({ reason: message }, 'the origin gives no lease');
  }
}

/** The error of an edge whose keys may be outdated. */
export function stale(): KeysError {
  return new KeysError('EDGE_STALE', 'This edge has no lease: its origin has not answered in time.');
}
