import { randomUUID } from 'node:crypto';
import type { Config } from '../../config/config.ts';
import type { NoticeStore } from '../../keys/notices/index.ts';
import type { Log } from '../../log.ts';
import type { Dispatcher, DeliveryCounts, Destination } from '../../notices/index.ts';

/** How often the store is asked for what is new. */
const EVERY_MS = 1000;

/** Whom the configuration wants to be notified, with the secrets as they are now. @throws KeysError CONFIG_… */
export async function destinationIn({ notices }: Config): Promise<Destination | undefined> {
  if (!notices) return undefined;
  const { readDestination } = await import('../../notices/index.ts');
  return readDestination(notices, process.env);
}

export interface StartedDelivery {
  /** What became of attempts, by now. */
  readonly counts: DeliveryCounts;
  /** How many wait in the store; undefined while there is no webhook. */
  countWaiting(): Promise<number | undefined>;
}

/** Sends notices while a server runs. Nothing of it is loaded while there is no webhook. */
export class NoticeDelivery {
  readonly #store: NoticeStore;
  readonly #clock: () => number;
  readonly #log: Log;
  readonly #onStart: ((started: StartedDelivery) => void) | undefined;
  #destination: Destination | undefined;
  #dispatcher: Dispatcher | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  /**
   * @param clock milliseconds since 1970
   * @param onStart is called when there is a webhook for the first time
   */
  constructor(store: NoticeStore, clock: () => number, log: Log, onStart?: (started: StartedDelivery) => void) {
    [this.#store, this.#clock] = [store, clock];
    [this.#log, this.#onStart] = [log, onStart];
  }

  /** Goes on by another configuration; undefined for one without a webhook. */
  async take(destination: Destination | undefined): Promise<void> {
    this.#destination = destination;
    if (!destination) return;
    // A webhook that wanted no notices may want them again. If it cannot be written now, the next reload does.
    await this.#store.forgetGone().catch((error: unknown) => this.#log.debug({ err: error }, 'notices stay off'));
    if (this.#dispatcher) return;
    const [{ Dispatcher }, { postNotice }, { packageVersion }] = await Promise.all([
      import('../../notices/index.ts'),
      import('../../notices/index.ts'),
      import('../../version.ts'),
    ]);
    if (this.#dispatcher) return;
    const version = packageVersion();
    const dispatcher = new Dispatcher({
      store: this.#store,
      destination: () => this.#destination,
      post: (notice, webhook, options) =>
        // Receivers compare it with their clocks; that of the store may be ahead of all.
        postNotice(notice, webhook, { ...options, now: Date.now(), version }),
      clock: this.#clock,
      elapsed: () => performance.now(),
      random: Math.random,
      id: randomUUID(),
      log: this.#log,
    });
    this.#dispatcher = dispatcher;
    await dispatcher.begin();
    // Whoever sees that there are notices can rely on it that what happens from then on is notified.
    this.#onStart?.({
      counts: dispatcher.counts,
      countWaiting: async () => this.#destination && this.#store.countWaiting(),
    });
    const pass = async () => {
      if (!this.#isStopped) await dispatcher.pass();
      if (!this.#isStopped) this.#timer = setTimeout(() => void pass(), EVERY_MS).unref();
    };
    void pass();
  }

  /** Ends attempts under way, which another process then repeats. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#dispatcher?.stop();
  }
}
