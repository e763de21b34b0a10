import { setTimeout as delay } from 'node:timers/promises';
import { isKeysError, KeysError, Wakeup } from '../../keys/basics/index.ts';
import type { NotificationReport } from '../../keys/repository/index.ts';
import type { Log } from '../../log.ts';
import { KeyChanges } from '../../store/index.ts';
import { FeedLines } from './feed-lines.ts';
import { FeedGone, type FeedSource } from './feed-source.ts';
import { KeyTable } from './key-table.ts';

/** How an edge follows its origin. */
export interface FollowerOptions {
  readonly source: FeedSource;
  /** After how many milliseconds without a question it rests. Default: 10 seconds. */
  readonly idleMs?: number | undefined;
  readonly log: Log;
}

/** How long to wait until a snapshot is asked for again, in milliseconds. */
const RETRY_MS = 1000;
const IDLE_MS = 10_000;
/** How long a lease is waited for that is needed after a rest, at most: a failure ends that before. */
const ROUSE_MS = 5000;
/** No other attempt ends otherwise, unless somebody does something. */
const REFUSALS = new Set(['UNAUTHENTICATED', 'FORBIDDEN', 'SERVER_INCOMPATIBLE', 'CONFIG_UNAVAILABLE']);

/**
 * The keys of the origin, and for how long they are right: as long as the origin has said, when it was asked. While
 * nobody asks for keys, it rests: it is told of changes, and gets a lease once somebody does.
 */
export class Follower {
  readonly #options: FollowerOptions;
  readonly #changes = new KeyChanges();
  readonly #closed = new AbortController();
  readonly #started = Promise.withResolvers<void>();
  #table = new KeyTable();
  /** When the origin was last asked that has given a lease, and when that ends: its own start before the first one. */
  #provenAt = performance.now();
  #leasedUntil = this.#provenAt;
  #isLeased = false;
  #wasLeased = false;
  /** When somebody asked for a key, by `performance.now`. */
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
   * Loads all keys and follows their changes. It resolves once it may answer, or has waited for `patienceMs`: then it
   * goes on loading, and may not answer before it has all keys.
   * @throws KeysError UNAUTHENTICATED, FORBIDDEN, SERVER_INCOMPATIBLE if the origin refuses meanwhile;
   *   CONFIG_UNAVAILABLE where something is missing here
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

  /** How many milliseconds ago the origin was asked that has given the last lease. */
  get lagMs(): number {
    return performance.now() - this.#provenAt;
  }

  /** For how many milliseconds the lease still lasts; below 0 if it has ended. */
  get leaseMs(): number {
    return this.#leasedUntil - performance.now();
  }

  /** Whether it has no lease because nobody asks for keys. */
  get isResting(): boolean {
    return this.#rest !== undefined && this.leaseMs <= 0;
  }

  /** Whether it may answer: within its lease. */
  get mayAnswer(): boolean {
    return this.leaseMs > 0;
  }

  /** Whether it may answer, once it has a lease again if it rests. */
  async rouse(): Promise<boolean> {
    if (!this.isResting) return this.mayAnswer;
    this.#rest?.abort();
    await this.#settled.wait(ROUSE_MS);
    return this.mayAnswer;
  }

  /** Like `rouse`, for somebody who asks for a key. */
  asked(): true | Promise<boolean> {
    this.#askedAt = performance.now();
    return this.mayAnswer || this.rouse();
  }

  /** See `KeyRepository.revision`: somebody asks for a key. */
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
          this.#options.log.warn({ reason: error.message }, 'the origin has other changes: all keys are loaded anew');
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
    // Somebody has asked since: it waits for a lease, as by `rouse`.
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

/** What an edge says that does not know whether its keys are still right. */
export function stale(): KeysError {
  return new KeysError('EDGE_STALE', 'This edge has no lease: its origin has not answered in time.');
}
