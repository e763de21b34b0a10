import { randomUUID } from 'node:crypto';
import type { Background, BackgroundContext } from '../../feature.ts';
import type { Log } from '../../log.ts';
import { Dispatcher } from './dispatcher.ts';
import { type Destination, readDestination } from './destination.ts';
import { NOTICES, type NoticeStore } from './collect.ts';
import { noticeMetrics } from './metrics.ts';

/** Interval of checks for new notices. */
const EVERY_MS = 1000;

/** The destination that a configuration names, with the secrets as they are now. @throws KeysError CONFIG_… */
async function destinationIn(
  { notices }: Pick<BackgroundContext['config'], 'notices'>,
  features: BackgroundContext['features'],
): Promise<Destination | undefined> {
  return notices && readDestination(notices, process.env, features);
}

/** Delivers notices as the configuration says. @throws KeysError CONFIG_… if they cannot be signed */
export async function deliverNotices(context: BackgroundContext): Promise<Background> {
  const { keys, config, features, turn, log } = context;
  const destination = await destinationIn(config, features);
  const delivery = new NoticeDelivery({
    store: keys.port(NOTICES),
    clock: keys.clock,
    turn,
    log,
    measure: context.measure,
  });
  await delivery.take(destination);
  return {
    async prepare(changed) {
      const next = await destinationIn(changed.config, features);
      return () => delivery.take(next);
    },
    stop: () => delivery.stop(),
  };
}

interface DeliveryOptions {
  store: NoticeStore;
  /** Milliseconds since 1970. */
  clock: () => number;
  /** Resolves when this process, of those on this machine, is the one that delivers. */
  turn: Promise<void>;
  log: Log;
  /** Registers metrics once there is a webhook. */
  measure?: BackgroundContext['measure'];
}

/** Sends notices while a server runs. */
export class NoticeDelivery {
  readonly #options: DeliveryOptions;
  #destination: Destination | undefined;
  #dispatcher: Dispatcher | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(options: DeliveryOptions) {
    this.#options = options;
  }

  /** Continues with another configuration; undefined for one without a webhook. */
  async take(destination: Destination | undefined): Promise<void> {
    this.#destination = destination;
    if (!destination) return;
    const { store, clock, turn, log, measure } = this.#options;
    // A webhook that refused notices may accept them again. If this cannot be written now, the next reload does it.
    await store.forgetGone().catch((error: unknown) => log.debug({ err: error }, 'notices stay off'));
    if (this.#dispatcher) return;
    const dispatcher = new Dispatcher({
      store,
      destination: () => this.#destination,
      clock,
      elapsed: () => performance.now(),
      random: Math.random,
      id: randomUUID(),
      log,
    });
    this.#dispatcher = dispatcher;
    await dispatcher.begin();
    // From now on, all events are notified.
    let isTurn = false;
    const countWaiting = async () => (isTurn && this.#destination ? store.countWaiting() : undefined);
    measure?.(noticeMetrics({ counts: dispatcher.counts, countWaiting }));
    const pass = async () => {
      if (!this.#isStopped) await dispatcher.pass();
      if (!this.#isStopped) this.#timer = setTimeout(() => void pass(), EVERY_MS).unref();
    };
    void turn.then(() => {
      isTurn = true;
      return pass();
    });
  }

  /** Stops attempts in progress, which another process then repeats. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#dispatcher?.stop();
  }
}
