import { hash } from 'node:crypto';
import { type Collected, collectNotices } from '../keys/notices/collect.ts';
import type { NoticeStore } from '../keys/notices/notice-store.ts';
import { MAX_REFUSED_KEYS, refusalHour } from '../keys/notices/refusals.ts';
import { type NoticeSettings, shownWebhook } from '../keys/notices/settings.ts';
import { Deliveries, type DeliveriesOptions, type DeliveryCounts } from './deliveries.ts';
import type { Destination } from './destination.ts';

/** What a courier needs from outside. */
export interface CourierOptions extends DeliveriesOptions {
  store: NoticeStore;
  /** A random id of this process. */
  id: string;
}

/** For how long the lease is taken, and how soon it is taken again: one that dies is followed within the first. */
const LEASE_MS = 15_000;
const RENEW_MS = 5000;
/** How often keys that are refused often are looked for. */
const REFUSALS_MS = 60_000;

/**
 * Collects notices and has them delivered, as the one of all processes of a store that has the lease. A delivery that
 * is not known to have happened is repeated, by this process or another one.
 */
export class Courier {
  readonly #options: CourierOptions;
  readonly #deliveries: Deliveries;
  /** What looks at the store now. */
  #looking: Promise<void> = Promise.resolve();
  /** Until when the lease is this process's, and when it was last asked for, by `elapsed`. */
  #leasedUntil = Number.NEGATIVE_INFINITY;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #refusalsAt = Number.NEGATIVE_INFINITY;
  #isFull = false;
  #isStuck = false;

  constructor(options: CourierOptions) {
    this.#options = options;
    this.#deliveries = new Deliveries(options, {
      isHolder: () => this.isHolder,
      retire: (url) => this.#retire(url),
    });
  }

  /** What became of attempts in this process. */
  get counts(): DeliveryCounts {
    return this.#deliveries.counts;
  }

  /** Whether it is this process that delivers. */
  get isHolder(): boolean {
    return this.#options.elapsed() < this.#leasedUntil;
  }

  /** Notes where to begin, if that was never done: what happens from then on is told. What fails is logged. */
  begin(): Promise<void> {
    return (this.#looking = this.#begin());
  }

  /** Looks once at what is to be done, and begins to do it. What fails is logged. */
  pass(): Promise<void> {
    return (this.#looking = this.#pass());
  }

  async #begin(): Promise<void> {
    const { store, id, clock, elapsed, destination, log } = this.#options;
    const { url, settings } = destination() ?? {};
    if (url === undefined || !settings) return;
    try {
      const options = { events: settings.events, endpoint: endpointOf(url), now: clock() };
      const until = elapsed() + LEASE_MS;
      await store.withLease({ holder: id, forMs: LEASE_MS }, async (writer) => {
        if (!writer.state) await collectNotices(writer, options);
        this.#leasedUntil = until;
      });
    } catch (error) {
      log.warn({ err: error }, 'notices could not be collected or delivered');
    }
  }

  async #pass(): Promise<void> {
    const destination = this.#options.destination();
    if (!destination || this.#deliveries.isEnded) return;
    try {
      await this.#collect(destination);
      if (this.isHolder) await this.#deliveries.begin();
      if (this.#isStuck) this.#options.log.info({}, 'notices are collected again');
      this.#isStuck = false;
    } catch (error) {
      if (!this.#isStuck) this.#options.log.warn({ err: error }, 'notices could not be collected or delivered');
      this.#isStuck = true;
    }
  }

  /** Resolves once all attempts under way have ended, and that is written. @throws KeysError STORE_… */
  async idle(): Promise<void> {
    await this.#deliveries.idle();
    await this.#write();
  }

  /** Ends attempts, writes what is known of them, and lets another process go on. */
  async stop(): Promise<void> {
    this.#deliveries.end();
    const { store, id } = this.#options;
    try {
      await this.#looking;
      await this.idle();
      if (this.isHolder) await store.release(id);
    } catch {
      // The lease ends by itself, and what is not known to be delivered is delivered again.
    }
    this.#leasedUntil = Number.NEGATIVE_INFINITY;
  }

  async #collect({ url, settings }: Destination): Promise<void> {
    const { store, id, clock, elapsed } = this.#options;
    const isDue = elapsed() >= this.#lookedAt + RENEW_MS;
    if (!isDue) {
      if (!this.isHolder) return;
      const isBehind = !this.#isFull && (await store.behind()) > 0;
      if (!isBehind && !this.#deliveries.hasSettled) return;
    } else if (!(await store.isFree(id))) return this.#lose();
    const refused = await this.#findRefused(settings);
    for (let more = true; more && !this.#deliveries.isEnded;) {
      const began = elapsed();
      const settled = this.#deliveries.takeSettled();
      let collected: Collected | undefined;
      try {
        collected = await store.withLease({ holder: id, forMs: LEASE_MS }, async (writer) => {
          await writer.settle(settled);
          return collectNotices(writer, { events: settings.events, endpoint: endpointOf(url), now: clock(), refused });
        });
      } catch (error) {
        this.#deliveries.giveBack(settled);
        throw error;
      }
      if (!collected) return this.#lose();
      [this.#lookedAt, this.#leasedUntil] = [began, began + LEASE_MS];
      this.#report(collected, url);
      more = collected.more;
    }
  }

  /** Another process has the lease: it may die. */
  #lose(): void {
    [this.#lookedAt, this.#leasedUntil] = [this.#options.elapsed(), Number.NEGATIVE_INFINITY];
  }

  #report({ isGone, isFull }: Collected, url: string): void {
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

  /** Writes what became of attempts. */
  async #write(): Promise<void> {
    const settled = this.#deliveries.takeSettled();
    if (settled.length === 0) return;
    const { store, id } = this.#options;
    await store.withLease({ holder: id, forMs: LEASE_MS }, (writer) => writer.settle(settled));
  }
}

/** What identifies a webhook in the store, where its address is not kept: that may hold a secret. */
export function endpointOf(url: string): string {
  return hash('sha256', url, 'hex').slice(0, 32);
}
