import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import type { Log } from '../../log.ts';
import { stopSignal } from './signals.ts';

/** What the first process tells the others. */
const STOP = 'stop';
/** How long to wait before a worker is replaced that ended soon after its start, in milliseconds. */
const RESTART_DELAY_MS = 1000;

export interface WorkersOptions {
  count: number;
  log: Log;
  /** Called once, with the address that all of them listen on. */
  onListening: (url: string) => void;
}

/** Whether this process is one of the workers. */
export const isWorker = (): boolean => cluster.isWorker;

/**
 * Runs this same command in several processes on one port. One that ends is replaced; a signal stops all, each when its
 * requests in flight have ended.
 * @returns the exit code: that of the first worker where it could not start, 0 after a signal
 */
export async function runWorkers({ count, log, onListening }: WorkersOptions): Promise<number> {
  // Each accepts by itself: a connection that is handed to a worker which just died would never be answered.
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  const first = cluster.fork();
  // What keeps one from listening keeps all from it, and is said once: the others wait.
  const [started] = (await Promise.race([once(first, 'message'), once(first, 'exit')])) as [
    { url: string } | number | null,
  ];
  if (typeof started !== 'object' || started === null) return started ?? 1;
  onListening(started.url);

  let isStopping = false;
  const replace = (worker: Worker, code: number | null, signal: string | null) => {
    if (isStopping) return;
    log.error({ worker: worker.process.pid, code, signal }, 'a worker ended, and is replaced');
    setTimeout(() => !isStopping && cluster.fork(), RESTART_DELAY_MS);
  };
  cluster.on('exit', replace);
  for (let index = 1; index < count; index += 1) cluster.fork();

  const signal = await stopSignal();
  isStopping = true;
  log.info({ signal }, 'stopping');
  const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
  await Promise.all(
    workers.map(async (worker) => {
      const ended = worker.isDead() ? undefined : once(worker, 'exit');
      if (worker.isConnected()) worker.send(STOP);
      await ended;
    }),
  );
  cluster.off('exit', replace);
  return 0;
}

/** Tells the first process, from a worker, that this one listens. */
export function reportListening(url: string): void {
  process.send?.({ url });
}

/**
 * Resolves, in a worker, when the first process says so. Signals are for that one: a terminal sends them to all of its group,
 * and a second one would end requests in flight. A worker whose first process is gone ends at once, as node:cluster has it.
 */
export function stopOrder(): Promise<string> {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {});
  return new Promise((resolve) => {
    process.on('message', (message) => {
      if (message === STOP) resolve(STOP);
    });
  });
}

/** Lets a worker end that has nothing left to do: the channel to the first process would keep it. */
export function leaveWorkers(): void {
  process.channel?.unref();
}
