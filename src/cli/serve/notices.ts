import { randomUUID } from 'node:crypto';
import type { Config } from '../../config/config.ts';
import type { NoticeStore } from '../../keys/feed/index.ts';
import type { Log } from '../../log.ts';
import type { Dispatcher, DeliveryCounts, Destination } from '../../features/notices/index.ts';

/** How often to look for what is new. */
const EVERY_MS = 1000;

/** Whom the configuration wants to be notified, with the secrets as they are now. @throws KeysError CONFIG_… */
export async function destinationIn({ notices }: Config): Promise<Destination | undefined> {
  if (!notices) return undefined;
  const { readDestination } = await import('../../features/notices/index.ts');
  return readDestination(notices, process.env);
}

export interface StartedDelivery {
  /** What became of attempts, by now. */
  readonly counts: DeliveryCounts;
  /** How many wait in the store; undefined while there is no webhook. */
  countWaiting(): Promise<number | undefined>;
}

interface DeliveryOptions {
  store: NoticeStore;
  /** Milliseconds since 1970. */
  clock: () => number;
  /** Resolves once it is this process, of those of a machine, that delivers. */
  turn: Promise<void>;
  log: Log;
  /** Is called when there is a webhook for the first time. */
  onStart?: (started: StartedDelivery) => void;
}

/** Sends notices while a server runs. Nothing of it is loaded while there is no webhook. */
export class NoticeDelivery {
  readonly #options: DeliveryOptions;
  #destination: Destination | undefined;
  #dispatcher: Dispatcher | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(options: DeliveryOptions) {
    this.#options = options;
  }

  /** Goes on by another configuration; undefined for one without a webhook. */
  async take(destination: Destination | undefined): Promise<void> {
    this.#destination = destination;
    if (!destination) return;
    const { store, clock, turn, log, onStart } = this.#options;
    // A webhook that wanted no notices may want them again. If it cannot be written now, the next reload does.
    await store.forgetGone().catch((error: unknown) => log.debug({ err: error }, 'notices stay off'));
    if (this.#dispatcher) return;
    const [{ Dispatcher, postNotice }, { packageVersion }] = await Promise.all([
      import('../../features/notices/index.ts'),
      import('../../version.ts'),
    ]);
    if (this.#dispatcher) return;
    const version = packageVersion();
    const dispatcher = new Dispatcher({
      store,
      destination: () => this.#destination,
      post: (notice, webhook, options) =>
        // Receivers compare it with their clocks; that of the store may be ahead of all.
        postNotice(notice, webhook, { ...options, now: Date.now(), version }),
      clock,
      elapsed: () => performance.now(),
      random: Math.random,
      id: randomUUID(),
      log,
    });
    this.#dispatcher = dispatcher;
    await dispatcher.begin();
    // Whoever sees that there are notices can rely on it that what happens from then on is notified.
    onStart?.({
      counts: dispatcher.counts,
      countWaiting: async () => this.#destination && store.countWaiting(),
    });
    const pass = async () => {
      if (!this.#isStopped) await dispatcher.pass();
      if (!this.#isStopped) this.#timer = setTimeout(() => void pass(), EVERY_MS).unref();
    };
    void turn.then(pass);
  }

  /** Ends attempts under way, which another process then repeats. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#dispatcher?.stop();
  }
}
