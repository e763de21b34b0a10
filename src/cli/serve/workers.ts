import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import type { Log } from '../../log.ts';
import { stopSignal } from './signals.ts';

/** The message by which the primary tells a worker to stop. */
const STOP = 'stop';
/** How long to wait before replacing a worker, which may fail again at once. */
const RESTART_DELAY_MS = 1000;

export interface WorkersOptions {
  count: number;
  log: Log;
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
export async function runWorkers({ count, log, onListening }: WorkersOptions): Promise<number> {
  // Each worker accepts its own connections: one handed to a worker that just died would never be answered.
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  const first = cluster.fork();
  // The others wait for the first: what keeps one from listening keeps all from it, and is reported once.
  const [started] = (await Promise.race([once(first, 'message'), once(first, 'exit')])) as [
    { url: string } | number | null,
  ];
  if (typeof started !== 'object' || started === null) return started ?? 1;
  onListening(started.url);

  let isStopping = false;
  const replace = (worker: Worker, code: number | null, signal: string | null) => {
    if (isStopping) return;
    log.error({ worker: worker.process.pid, code, signal }, 'a worker exited and will be replaced');
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
      const exited = worker.isDead() ? undefined : once(worker, 'exit');
      if (worker.isConnected()) worker.send(STOP);
      await exited;
    }),
  );
  cluster.off('exit', replace);
  return 0;
}

/** Tells the primary, from a worker, that it is listening. */
export function reportListening(url: string): void {
  process.send?.({ url });
}

/**
 * Resolves, in a worker, when the primary tells it to stop. Signals are left to the primary: a terminal sends them to
 * the whole group, and a second one would cut requests off. If the primary is gone, node:cluster ends the worker.
 */
export function stopOrder(): Promise<string> {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {});
  return new Promise((resolve) => {
    process.on('message', (message) => {
      if (message === STOP) resolve(STOP);
    });
  });
}

/** Lets an idle worker exit, which the channel to the primary would keep alive. */
export function leaveWorkers(): void {
  process.channel?.unref();
}
