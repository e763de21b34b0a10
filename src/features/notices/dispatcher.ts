import { hash } from 'node:crypto';
import type { Log } from '../../log.ts';
import { attempt, type Destination } from './destination.ts';
import {
  type Attempt,
  type CollectionResult,
  collectNotices,
  MAX_REFUSED_KEYS,
  type NoticeStore,
  type PendingNotices,
  refusalHour,
} from './collect.ts';
import { nextAttempt, type NoticeSettings, shownWebhook, type WaitingNotice } from './notice.ts';

/** Dependencies of deliveries. */
interface DeliveriesOptions {
  store: Pick<NoticeStore, 'due'>;
  /** Undefined while there is no webhook. */
  destination: () => Destination | undefined;
  /** Milliseconds since 1970. */
  clock: () => number;
  /** A monotonic clock in milliseconds. */
  elapsed: () => number;
  /** From 0 up to 1. */
  random: () => number;
  log: Log;
  /** Time-out of an attempt in milliseconds. Default: 15 seconds. */
  timeoutMs?: number;
}

interface Sender {
  /** This process delivers. */
  isHolder: () => boolean;
  /** Called when a webhook refuses further notices. */
  retire: (url: string) => Promise<void>;
}

/** Counts of attempts in this process. */
export interface DeliveryCounts {
  delivered: number;
  failed: number;
  givenUp: number;
}

/** Deliveries at the same time, and deliveries before their outcome is written. */
const [CONCURRENCY, BATCH] = [4, 100];
/** Maximum pause that a receiver can request. */
const MAX_RETRY_AFTER_MS = 3_600_000;

/** Delivers due notices as fast as the receiver accepts them, and collects outcomes to write. */
class Deliveries {
  readonly counts: DeliveryCounts = { delivered: 0, failed: 0, givenUp: 0 };
  /** The webhook refuses further notices, so none are sent. */
  isGone = false;
  readonly #options: DeliveriesOptions;
  readonly #sender: Sender;
  readonly #workers = new Set<Promise<void>>();
  readonly #underWay = new Set<string>();
  /** Notices that workers take next. */
  #queue: WaitingNotice[] = [];
  readonly #ended = new AbortController();
  readonly #settled: Attempt[] = [];
  /** The receiver requested a pause until this time, by `elapsed`. */
  #pausedUntil = Number.NEGATIVE_INFINITY;
  /** The last attempt failed, so they are made one at a time. */
  #isFailing = false;

  constructor(options: DeliveriesOptions, sender: Sender) {
    [this.#options, this.#sender] = [options, sender];
  }

  /** Starts to deliver due notices that are not already being delivered. @throws KeysError STORE_… */
  async begin(): Promise<void> {
    const { store, clock } = this.#options;
    const most = this.#isFailing ? 1 : CONCURRENCY;
    if (this.#workers.size >= most || this.#isPaused) return;
    if (this.#queue.length === 0) {
      const known = new Set([...this.#underWay, ...this.#settled.map(({ id }) => id)]);
      const due = await store.due(clock(), BATCH + known.size);
      this.#queue = due.filter(({ id }) => !known.has(id));
    }
    for (let count = Math.min(most - this.#workers.size, this.#queue.length); count > 0; count -= 1) {
      const worker = this.#deliverAll().finally(() => this.#workers.delete(worker));
      this.#workers.add(worker);
    }
  }

  /** Attempts are in progress. */
  get isBusy(): boolean {
    return this.#workers.size > 0;
  }

  /** There are outcomes to write. */
  get hasSettled(): boolean {
    return this.#settled.length > 0;
  }

  /** Takes outcomes of attempts, which the caller must write. */
  takeSettled(): Attempt[] {
    return this.#settled.splice(0);
  }

  /** Takes back outcomes that could not be written. */
  giveBack(settled: readonly Attempt[]): void {
    this.#settled.unshift(...settled);
  }

  /** Aborts attempts, and starts no more. */
  end(): void {
    this.#ended.abort();
  }

  get isEnded(): boolean {
    return this.#ended.signal.aborted;
  }

  /** Resolves once all attempts have ended. */
  async idle(): Promise<void> {
    await Promise.all(this.#workers);
  }

  /** The rest of the pause that the receiver requested. */
  get pausedMs(): number {
    return Math.max(0, this.#pausedUntil - this.#options.elapsed());
  }

  get #isPaused(): boolean {
    return this.isGone || this.pausedMs > 0;
  }

  /** Delivers one after another, up to the first failure. The rest is read again later. */
  async #deliverAll(): Promise<void> {
    for (let notice = this.#queue.shift(); notice; notice = this.#queue.shift()) {
      const destination = this.#options.destination();
      if (!destination || !this.#sender.isHolder() || this.#isPaused || this.isEnded) break;
      this.#underWay.add(notice.id);
      await this.#attempt(notice, destination).finally(() => this.#underWay.delete(notice.id));
      if (this.#isFailing) break;
    }
    this.#queue = [];
  }

  async #attempt(notice: WaitingNotice, destination: Destination): Promise<void> {
    const { url } = destination;
    const { clock, elapsed, random, log, timeoutMs } = this.#options;
    const { id, type } = notice;
    const { signal } = this.#ended;
    const answer = await attempt(destination, notice, { signal, timeoutMs });
    // It may have arrived, but is repeated.
    if (signal.aborted && answer.is !== 'taken') return;
    const at = clock();
    if (answer.is === 'taken') {
      this.counts.delivered += 1;
      this.#isFailing = false;
      this.#settled.push({ id, at, failure: null, nextAt: null });
      return;
    }
    const { failure } = answer;
    this.counts.failed += 1;
    this.#isFailing = true;
    const fields = { webhook: shownWebhook(url), notice: id, type, attempt: notice.attempts + 1, reason: failure };
    if (answer.is === 'gone') {
      this.#settled.push({ id, at, failure, nextAt: null });
      await this.#sender.retire(url);
      return;
    }
    const wait = Math.min(answer.retryAfterMs ?? 0, MAX_RETRY_AFTER_MS);
    if (wait > 0) this.#pausedUntil = elapsed() + wait;
    const next = nextAttempt(notice.attempts + 1, at, random());
    this.#settled.push({ id, at, failure, nextAt: next === undefined ? null : Math.max(next, at + wait) });
    if (next === undefined) {
      this.counts.givenUp += 1;
      log.error(fields, 'a notice could not be delivered, and is given up');
    } else log.warn(fields, 'a notice could not be delivered yet');
  }
}

/** Dependencies of a dispatcher. */
interface DispatcherOptions extends DeliveriesOptions {
  store: NoticeStore;
  /** A random id of this process. */
  id: string;
}

/**
 * The duration of the lease, and the interval for renewing it. Another process follows a dead one within the former.
 */
const LEASE_MS = 15_000;
const RENEW_MS = 5000;
/** Interval of checks for often refused keys. */
const REFUSALS_MS = 60_000;
/** The maximum rest without work, unless there are events. Expiries of keys are not events. */
const REST_MS = 60_000;

/**
 * Collects notices and delivers them, in the one process of the store with the lease. If the outcome of a delivery is
 * unknown, it is repeated, possibly by another process.
 */
export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #deliveries: Deliveries;
  /** The current check of the store. */
  #looking: Promise<void> = Promise.resolve();
  /** The end of this process's lease, and when it was last requested, by `elapsed`. */
  #leasedUntil = Number.NEGATIVE_INFINITY;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #refusalsAt = Number.NEGATIVE_INFINITY;
  #isFull = false;
  #isStuck = false;
  /** The rest without work: until a time by `elapsed`, an event, or a new destination. */
  #rest: { until: number; received: number; destination: Destination } | undefined;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#deliveries = new Deliveries(options, {
      isHolder: () => this.isHolder,
      retire: (url) => this.#retire(url),
    });
  }

  /** Counts of attempts in this process. */
  get counts(): DeliveryCounts {
    return this.#deliveries.counts;
  }

  /** This process delivers. */
  get isHolder(): boolean {
    return this.#options.elapsed() < this.#leasedUntil;
  }

  /**
   * Records the start of notices if there is none: later events are notified, by whichever process checks. Failures are
   * logged.
   */
  begin(): Promise<void> {
    return (this.#looking = this.#begin());
  }

  /** Checks once for work and starts it. Failures are logged. */
  pass(): Promise<void> {
    return (this.#looking = this.#pass());
  }

  async #begin(): Promise<void> {
    const { store, id, clock, destination, log } = this.#options;
    const { url, settings } = destination() ?? {};
    if (url === undefined || !settings) return;
    try {
      const options = { events: settings.events, endpoint: endpointOf(url), now: clock() };
      await store.withLease({ holder: id, forMs: 0 }, async (writer) => {
        if (!writer.state) await collectNotices(writer, options);
      });
    } catch (error) {
      log.warn({ err: error }, 'notices could not be collected or delivered');
    }
  }

  async #pass(): Promise<void> {
    const destination = this.#options.destination();
    if (!destination || this.#deliveries.isEnded) return;
    const received = this.#options.store.changesReceived();
    if (this.#isResting(received, destination)) return;
    try {
      const pending = await this.#collect(destination);
      const isDue = (pending?.dueAt ?? Number.POSITIVE_INFINITY) <= this.#options.clock();
      if (isDue && this.isHolder) await this.#deliveries.begin();
      if (received !== undefined && pending) this.#rest = this.#restAfter(pending, { received, destination });
      if (this.#isStuck) this.#options.log.info({}, 'notices are collected again');
      this.#isStuck = false;
    } catch (error) {
      if (!this.#isStuck) this.#options.log.warn({ err: error }, 'notices could not be collected or delivered');
      this.#isStuck = true;
    }
  }

  #isResting(received: number | undefined, destination: Destination): boolean {
    const rest = this.#rest;
    if (!rest || rest.received !== received || rest.destination !== destination) return false;
    return this.#options.elapsed() < rest.until;
  }

  /** Resolves once all attempts have ended, and their outcomes are written. @throws KeysError STORE_… */
  async idle(): Promise<void> {
    await this.#deliveries.idle();
    await this.#write();
  }

  /** Stops attempts, writes their outcomes, and lets another process continue. */
  async stop(): Promise<void> {
    this.#deliveries.end();
    const { store, id } = this.#options;
    try {
      await this.#looking;
      await this.idle();
      if (this.isHolder) await store.release(id);
    } catch {
      // The lease runs out by itself, and notices without a known outcome are delivered again.
    }
    this.#leasedUntil = Number.NEGATIVE_INFINITY;
  }

  /** @returns pending work; undefined if another process delivers */
  async #collect({ url, settings }: Destination): Promise<PendingNotices | undefined> {
    const { store, id, clock, elapsed } = this.#options;
    const isDue = elapsed() >= this.#lookedAt + RENEW_MS;
    if (!isDue) {
      if (!this.isHolder) return undefined;
      const pending = await store.pending();
      if (!this.#hasNews(pending)) return pending;
    } else if (this.#leasedUntil === Number.NEGATIVE_INFINITY && !(await store.isFree(id))) {
      this.#lose();
      return store.pending();
    }
    const refused = await this.#findRefused(settings);
    for (let more = true; more && !this.#deliveries.isEnded;) {
      const began = elapsed();
      const settled = this.#deliveries.takeSettled();
      let collected: CollectionResult | undefined;
      try {
        collected = await store.withLease({ holder: id, forMs: LEASE_MS }, async (writer) => {
          await writer.settle(settled);
          return collectNotices(writer, { events: settings.events, endpoint: endpointOf(url), now: clock(), refused });
        });
      } catch (error) {
        this.#deliveries.giveBack(settled);
        throw error;
      }
      if (!collected) {
        this.#lose();
        break;
      }
      [this.#lookedAt, this.#leasedUntil] = [began, began + LEASE_MS];
      this.#report(collected, url);
      more = collected.more;
    }
    return store.pending();
  }

  #hasNews({ behind }: PendingNotices): boolean {
    return (behind > 0 && !this.#isFull) || this.#deliveries.hasSettled;
  }

  /** Time until there is work; undefined if there is some now. */
  #restAfter(pending: PendingNotices, since: { received: number; destination: Destination }) {
    if (this.#hasNews(pending) || this.#deliveries.isBusy) return undefined;
    const { clock, elapsed } = this.#options;
    const untilDueMs = (pending.dueAt ?? Number.POSITIVE_INFINITY) - clock();
    return { ...since, until: elapsed() + Math.min(REST_MS, Math.max(untilDueMs, this.#deliveries.pausedMs)) };
  }

  /** Another process has the lease. This one takes over if that process dies. */
  #lose(): void {
    [this.#lookedAt, this.#leasedUntil] = [this.#options.elapsed(), Number.NEGATIVE_INFINITY];
  }

  #report({ isGone, isFull }: CollectionResult, url: string): void {
    const { log } = this.#options;
    const webhook = shownWebhook(url);
    if (isGone && !this.#deliveries.isGone)
      log.error({ webhook }, 'the webhook answered 410 (Gone) and gets no notices until a server starts or reloads');
    if (isFull && !this.#isFull)
      log.error({ webhook }, 'too many notices wait for the webhook: the others wait in the audit log');
    [this.#deliveries.isGone, this.#isFull] = [isGone, isFull];
  }

  async #findRefused({ events, refusedOften }: NoticeSettings) {
    const { store, clock, elapsed } = this.#options;
    if (!events.includes('key.refused_often') || elapsed() < this.#refusalsAt + REFUSALS_MS) return [];
    this.#refusalsAt = elapsed();
    return store.findRefused(refusalHour(clock()), { least: refusedOften, limit: 2 * MAX_REFUSED_KEYS });
  }

  /** Sends nothing more to a webhook. */
  async #retire(url: string): Promise<void> {
    const { store, id } = this.#options;
    await store
      .withLease({ holder: id, forMs: LEASE_MS }, async (writer) => {
        if (writer.state) await writer.setState({ ...writer.state, gone: endpointOf(url) });
        await writer.clear();
      })
      // Its next answer will be the same.
      .catch(() => {});
    this.#report({ isGone: true, isFull: false, more: false }, url);
  }

  /** Writes the outcomes of attempts. */
  async #write(): Promise<void> {
    const settled = this.#deliveries.takeSettled();
    if (settled.length === 0) return;
    const { store, id } = this.#options;
    await store.withLease({ holder: id, forMs: LEASE_MS }, (writer) => writer.settle(settled));
  }
}

/** Identifies a webhook in the store without its address, which may contain a secret. */
export function endpointOf(url: string): string {
  return hash('sha256', url, 'hex').slice(0, 32);
}
