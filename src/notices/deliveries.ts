import type { WaitingNotice } from '../keys/notices/notice.ts';
import type { Attempt, NoticeStore } from '../keys/notices/notice-store.ts';
import { nextAttempt } from '../keys/notices/retries.ts';
import { shownWebhook } from '../keys/notices/settings.ts';
import type { Log } from '../log.ts';
import type { Destination } from './destination.ts';
import type { Answer, Webhook } from './post.ts';

/** What deliveries need from outside. */
export interface DeliveriesOptions {
  store: Pick<NoticeStore, 'due'>;
  /** Undefined while there is no webhook. */
  destination: () => Destination | undefined;
  /** Sends a notice once. */
  post: (notice: WaitingNotice, webhook: Webhook, options: { now: number; signal: AbortSignal }) => Promise<Answer>;
  /** Milliseconds since 1970. */
  clock: () => number;
  /** Milliseconds since any moment, which nobody can set. */
  elapsed: () => number;
  /** From 0 up to 1. */
  random: () => number;
  log: Log;
}

/** Who has notices delivered. */
interface Sender {
  /** Whether it is this process that delivers. */
  isHolder: () => boolean;
  /** Is called when a webhook says that it wants no notices any more. */
  retire: (url: string) => Promise<void>;
}

/** What became of attempts in this process. */
export interface DeliveryCounts {
  delivered: number;
  failed: number;
  givenUp: number;
}

/** How many are sent at the same time, and how many before it is written that they were. */
const [CONCURRENCY, BATCH] = [4, 100];
/** Whatever a receiver asks for, it is asked again after so long. */
const MAX_RETRY_AFTER_MS = 3_600_000;

/** Delivers what is due, as fast as the receiver takes it, and remembers what is to be written of that. */
export class Deliveries {
  readonly counts: DeliveryCounts = { delivered: 0, failed: 0, givenUp: 0 };
  /** Whether the webhook wants no notices any more: then nothing is sent. */
  isGone = false;
  readonly #options: DeliveriesOptions;
  readonly #sender: Sender;
  readonly #lanes = new Set<Promise<void>>();
  readonly #underWay = new Set<string>();
  /** What the lanes are to take next. */
  #queue: WaitingNotice[] = [];
  readonly #ended = new AbortController();
  readonly #settled: Attempt[] = [];
  /** Until when the receiver wants to be left alone, by `elapsed`. */
  #pausedUntil = Number.NEGATIVE_INFINITY;
  /** Whether the last attempt failed: then they are made one by one. */
  #isFailing = false;

  constructor(options: DeliveriesOptions, sender: Sender) {
    [this.#options, this.#sender] = [options, sender];
  }

  /** Begins to deliver what is due, as far as that is not under way. @throws KeysError STORE_… */
  async begin(): Promise<void> {
    const { store, clock } = this.#options;
    const most = this.#isFailing ? 1 : CONCURRENCY;
    if (this.#lanes.size >= most || this.#isPaused) return;
    if (this.#queue.length === 0) {
      const known = new Set([...this.#underWay, ...this.#settled.map(({ id }) => id)]);
      const due = await store.due(clock(), BATCH + known.size);
      this.#queue = due.filter(({ id }) => !known.has(id));
    }
    for (let count = Math.min(most - this.#lanes.size, this.#queue.length); count > 0; count -= 1) {
      const lane = this.#deliverAll().finally(() => this.#lanes.delete(lane));
      this.#lanes.add(lane);
    }
  }

  /** Whether there is something to be written of what became of attempts. */
  get hasSettled(): boolean {
    return this.#settled.length > 0;
  }

  /** What became of attempts, which the caller is to write from now on. */
  takeSettled(): Attempt[] {
    return this.#settled.splice(0);
  }

  /** Takes back what could not be written. */
  giveBack(settled: readonly Attempt[]): void {
    this.#settled.unshift(...settled);
  }

  /** Ends attempts; none begins any more. */
  end(): void {
    this.#ended.abort();
  }

  get isEnded(): boolean {
    return this.#ended.signal.aborted;
  }

  /** Resolves once all attempts under way have ended. */
  async idle(): Promise<void> {
    await Promise.all(this.#lanes);
  }

  get #isPaused(): boolean {
    return this.isGone || this.#options.elapsed() < this.#pausedUntil;
  }

  /** Delivers one after another. The first that fails is the last: what is left is asked for again. */
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

  async #attempt(notice: WaitingNotice, { url, keys }: Destination): Promise<void> {
    const { post, clock, elapsed, random, log } = this.#options;
    const { id, type } = notice;
    const { signal } = this.#ended;
    const answer = await post(notice, { url, keys }, { now: clock(), signal });
    // It may have arrived, and is repeated.
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
