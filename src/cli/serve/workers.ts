import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { ChangeSource, Received } from '../../keys/repository/index.ts';
import type { Log } from '../../log.ts';
import { followForWorkers, type StartConfig } from './config-source.ts';
import { STOP_SIGNALS, type StopSignal } from './service-manager.ts';

/** The primary's order to a worker to stop. */
const STOP = 'stop';
/** The primary's order to one worker to do the work of only one process of a machine. */
const TURN = 'turn';
/** A replacement that lives less than this may fail at once again, so the next one is delayed. */
const SHORT_LIFE_MS = 2000;
const RESTART_DELAY_MS = 1000;

export interface WorkersOptions {
  count: number;
  /** The file mode creation mask for the shared socket, if it is a Unix socket. */
  socketMask: number | undefined;
  log: Log;
  stop: StopSignal;
  config: StartConfig;
  /** Listens for changes of the store; undefined for a file. */
  listen: () => Promise<ChangeSource | undefined>;
  /** Called once, with the address of all workers. */
  onListening: (url: string) => void;
}

/** True in a worker. */
export const isWorker = (): boolean => cluster.isWorker;

/**
 * Runs this command in several processes on one port. A worker that exits is replaced; a signal stops all of them, each
 * after its requests in flight have finished.
 * @returns the exit code: that of the first worker if it could not start, 0 after a signal
 */
export async function runWorkers(options: WorkersOptions): Promise<number> {
  const { count, socketMask, log, stop, config, listen, onListening } = options;
  const fork = socketMask === undefined ? () => cluster.fork() : forkingUnder(socketMask);
  // Each worker accepts its own connections: one passed to a worker that just died would never be answered.
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  stop.serving();
  let isStopping = false;
  const listening = new Set<Worker>();
  let deliverer: Worker | undefined;
  const giveTurn = () => {
    if (deliverer && listening.has(deliverer)) return;
    [deliverer] = listening;
    if (deliverer) send(deliverer, TURN);
  };
  const replacedAt = new WeakMap<Worker, number>();
  cluster.on('message', (worker, message: object) => {
    if (!isListening(message)) return;
    listening.add(worker);
    // It began to listen after the order to stop.
    if (isStopping) send(worker, STOP);
    else giveTurn();
  });
  cluster.on('exit', (worker) => {
    listening.delete(worker);
    if (!isStopping) giveTurn();
  });
  // A worker that cannot be started, for lack of processes or memory, exits as well.
  cluster.on('fork', (worker) =>
    worker.on('error', (error) => log.error({ err: error, worker: worker.process.pid }, 'a worker failed')),
  );
  followForWorkers(config, log);
  const stopListening = listenForWorkers(listen);
  const { allFeatures } = await import('../../features/index.ts');
  for (const { inPrimary } of allFeatures()) await inPrimary?.();
  const first = fork();
  // The others wait for the first, since an error that keeps one from listening keeps all from it, and is reported
  // once.
  const exited = once(first, 'exit') as Promise<[number | null]>;
  const started = await Promise.race([listens(first), exited, stop.received]);
  if (Array.isArray(started)) return started[0] ?? 1;
  if (typeof started !== 'string') {
    onListening(started.url);
    cluster.on('exit', (worker, code, signal) => {
      if (isStopping) return;
      const isFailingAgain = performance.now() - (replacedAt.get(worker) ?? Number.NEGATIVE_INFINITY) < SHORT_LIFE_MS;
      const waitMs = isFailingAgain ? RESTART_DELAY_MS : 0;
      log.error({ worker: worker.process.pid, code, signal, waitMs }, 'a worker exited and will be replaced');
      setTimeout(() => {
        if (!isStopping) replacedAt.set(fork(), performance.now());
      }, waitMs);
    });
    for (let index = 1; index < count; index += 1) fork();
  }

  const signal = await stop.received;
  isStopping = true;
  log.info({ signal }, 'stopping');
  const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
  await Promise.all(
    workers.map(async (worker) => {
      const exited = worker.isDead() ? undefined : once(worker, 'exit');
      if (listening.has(worker)) send(worker, STOP);
      // A worker that does not listen yet would lose the message, and is ended by the signal. A listening one ignores
      // signals.
      else worker.process.kill('SIGTERM');
      await exited;
    }),
  );
  stopListening();
  return 0;
}

/**
 * A worker's message: it listens for changes, relies on received ones, has processed one, or has followers of its own.
 */
interface ListeningMessage {
  hears: 'changes' | 'asked' | 'taken' | 'followed';
}

/** The longest time that followers of an exited worker can continue, in milliseconds. */
const FOLLOWED_MS = 2000;

/** Listens for changes in the primary, once for all workers. @returns a function that stops this */
function listenForWorkers(listen: WorkersOptions['listen']): () => void {
  // The listening workers, each with callbacks for its next confirmations, in order.
  const listening = new Map<Worker, (() => void)[]>();
  let source: Promise<ChangeSource | undefined> | undefined;
  const tell = async (worker: Worker, received: Received) => {
    if (!worker.isConnected()) return;
    worker.send({ received }, () => {});
    const { promise, resolve } = Promise.withResolvers<void>();
    listening.get(worker)!.push(resolve);
    await promise;
  };
  const followed = new Set<Worker>();
  const ending = new Set<Promise<void>>();
  const begin = async () => {
    const begun = await listen();
    begun?.start(async (received) => {
      await Promise.all([...ending, ...Array.from(listening.keys(), (worker) => tell(worker, received))]);
    });
    return begun;
  };
  cluster.on('message', (worker, message: object) => {
    if (!('hears' in message)) return;
    const { hears } = message as ListeningMessage;
    if (hears === 'taken') return listening.get(worker)?.shift()?.();
    if (hears === 'followed') return void followed.add(worker);
    if (hears === 'changes') listening.set(worker, []);
    // A worker reports errors in opening the store.
    source ??= begin().catch(() => undefined);
    void source.then((begun) => begun?.asked());
  });
  cluster.on('exit', (worker) => {
    const waiting = listening.get(worker) ?? [];
    listening.delete(worker);
    const taken = () => waiting.forEach((resolve) => resolve());
    if (!followed.delete(worker)) return taken();
    const ended = delay(FOLLOWED_MS, undefined, { ref: false }).then(taken);
    ending.add(ended);
    void ended.then(() => ending.delete(ended));
  });
  return () => void source?.then((begun) => begun?.close());
}

/** In a worker: the changes that the primary receives. Without the primary, nothing is certain. */
export function changesOfPrimary(): ChangeSource {
  let hasAsked = false;
  let taken: Promise<unknown> = Promise.resolve();
  const tell = (hears: ListeningMessage['hears']) =>
    process.connected && process.send?.({ hears } satisfies ListeningMessage, undefined, undefined, () => {});
  return {
    start(hear) {
      process.on('message', (message: { received?: Received }) => {
        const { received } = message;
        if (received?.alive) hasAsked = false;
        if (!received) return;
        // In the order of arrival.
        taken = Promise.all([hear(received), taken]).then(() => tell('taken'));
      });
      process.on('disconnect', () => void hear({ alive: null }));
      tell('changes');
    },
    asked() {
      if (hasAsked) return;
      hasAsked = true;
      tell('asked');
    },
    followed: () => void tell('followed'),
    async close() {},
  };
}

/** Resolves with a worker's message that it listens. */
function listens(worker: Worker): Promise<{ url: string }> {
  return new Promise((resolve) => worker.on('message', (message: object) => isListening(message) && resolve(message)));
}

/** True for the message that a worker listens. */
function isListening(message: object): message is { url: string } {
  return 'url' in message;
}

/**
 * Sets the mask of this process, which creates only the socket of its workers, and returns a function that starts a
 * worker without it.
 */
function forkingUnder(mask: number): () => Worker {
  const usual = process.umask(mask);
  return () => {
    process.umask(usual);
    const worker = cluster.fork();
    process.umask(mask);
    return worker;
  };
}

function send(worker: Worker, order: typeof STOP | typeof TURN): void {
  // The worker may have exited by itself.
  if (worker.isConnected()) worker.send(order, () => {});
}

/** Resolves, in a worker, once it takes over the work that only one process of a machine does. */
export function turnOfWorker(): Promise<void> {
  return ordered(TURN);
}

function ordered(order: typeof STOP | typeof TURN): Promise<void> {
  return new Promise((resolve) => process.on('message', (message) => message === order && resolve()));
}

/**
 * Listens, in a worker, for the primary's order to stop. Once there can be requests, signals are left to the primary: a
 * terminal sends them to the whole group, and a second one would cut requests off. If the primary exits, node:cluster
 * ends the worker.
 */
export function listenForOrder(): StopSignal {
  return {
    received: ordered(STOP).then(() => STOP),
    serving() {
      for (const signal of STOP_SIGNALS) process.on(signal, () => {});
    },
  };
}

export function reportListening(url: string): void {
  process.send?.({ url });
}

/** Lets an idle worker exit, which the channel to the primary would keep alive. */
export function leaveWorkers(): void {
  process.channel?.unref();
}
