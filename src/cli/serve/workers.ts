import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { ChangeSource, Received } from '../../keys/repository/index.ts';
import type { Log } from '../../log.ts';
import { followForWorkers, type StartConfig } from './config-source.ts';
import { STOP_SIGNALS, type StopSignal } from './service-manager.ts';

/** The message by which the primary tells a worker to stop. */
const STOP = 'stop';
/** The message by which it tells one of them to do what one process of a machine does. */
const TURN = 'turn';
/** A replacement that lives no longer than this may fail at once again: the next one waits for so long. */
const SHORT_LIFE_MS = 2000;
const RESTART_DELAY_MS = 1000;

export interface WorkersOptions {
  count: number;
  /** The file mode creation mask for the socket that they share, if it is a Unix socket. */
  socketMask: number | undefined;
  log: Log;
  stop: StopSignal;
  config: StartConfig;
  /** What listens for changes of the store; undefined for a file. */
  listen: () => Promise<ChangeSource | undefined>;
  /** Called once, with the address that all workers listen on. */
  onListening: (url: string) => void;
}

/** Whether this process is one of the workers. */
export const isWorker = (): boolean => cluster.isWorker;

/**
 * Runs this command in several processes on one port. A worker that exits is replaced; a signal stops all of them, each
 * once its requests in flight have finished.
 * @returns the exit code: that of the first worker if it could not start, 0 after a signal
 */
export async function runWorkers(options: WorkersOptions): Promise<number> {
  const { count, socketMask, log, stop, config, listen, onListening } = options;
  const fork = socketMask === undefined ? () => cluster.fork() : forkingUnder(socketMask);
  // Each worker accepts its own connections: one handed to a worker that just died would never be answered.
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
    // It had begun to listen when it was to stop.
    if (isStopping) send(worker, STOP);
    else giveTurn();
  });
  cluster.on('exit', (worker) => {
    listening.delete(worker);
    if (!isStopping) giveTurn();
  });
  // One that cannot be started, for want of processes or memory, exits as well.
  cluster.on('fork', (worker) =>
    worker.on('error', (error) => log.error({ err: error, worker: worker.process.pid }, 'a worker failed')),
  );
  followForWorkers(config, log);
  const stopListening = listenForWorkers(listen);
  const { allFeatures } = await import('../../features/index.ts');
  for (const { inPrimary } of allFeatures()) await inPrimary?.();
  const first = fork();
  // The others wait for the first: what keeps one from listening keeps all from it, and is reported once.
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
      // One that does not listen yet would lose the message, and dies of the signal. Once it listens it ignores that.
      else worker.process.kill('SIGTERM');
      await exited;
    }),
  );
  stopListening();
  return 0;
}

/**
 * What a worker sends: it wants to hear of changes, relies on what it has received, has taken what it was told, or
 * tells others.
 */
interface ListeningMessage {
  hears: 'changes' | 'asked' | 'taken' | 'followed';
}

/** How long after the end of a worker those go on whom it told, at most, in milliseconds. */
const FOLLOWED_MS = 2000;

/** Hears of changes in the primary once for all workers. @returns ends it */
function listenForWorkers(listen: WorkersOptions['listen']): () => void {
  // Those that listen, each with what is to be done as it takes what it was told, in order.
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
    // A worker reports what keeps the store from being opened.
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

/** In a worker: what the primary hears of changes. Without the primary, nothing is sure. */
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
        // In the order in which it was told.
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

/** Resolves with what a worker says once it listens. */
function listens(worker: Worker): Promise<{ url: string }> {
  return new Promise((resolve) => worker.on('message', (message: object) => isListening(message) && resolve(message)));
}

/** Whether a worker says that it listens. */
function isListening(message: object): message is { url: string } {
  return 'url' in message;
}

/**
 * Sets the mask of this process, which creates the socket of its workers and nothing else, and returns what starts a
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
  // It may have exited by itself.
  if (worker.isConnected()) worker.send(order, () => {});
}

/** Resolves, in a worker, once it is the one that does what one process of a machine does. */
export function turnOfWorker(): Promise<void> {
  return ordered(TURN);
}

function ordered(order: typeof STOP | typeof TURN): Promise<void> {
  return new Promise((resolve) => process.on('message', (message) => message === order && resolve()));
}

/**
 * Listens, in a worker, to the primary's order to stop. Signals are left to the primary once there may be requests: a
 * terminal sends them to the whole group, and a second one would cut requests off. If the primary is gone, node:cluster
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
