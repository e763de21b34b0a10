import cluster, { type Worker } from 'node:cluster';
import { on } from 'node:events';
import type { ConfigFile } from '../../config/config-file.ts';
import type { ConfigFollower } from '../../config/config-follower.ts';
import type { Log } from '../../log.ts';
import { reportNothing, reportRefused } from './reload-log.ts';

/** What the primary sends to a worker that has asked: what to start with, if anything, or what to change to. */
interface ConfigMessage {
  config: ConfigFile | null;
}

/** What a worker sends to the primary: it asks for the configuration, or says whether it has taken the last one. */
type WorkerMessage = { asks: 'config' } | { taken: boolean };

/**
 * Follows the file of configuration in the primary, so that all workers have the same. A version goes to one worker,
 * and to the others only if that one takes it; a worker that starts later starts with the last one that was taken.
 */
export function followForWorkers(
  { file, follower }: { file: ConfigFile | undefined; follower: ConfigFollower | undefined },
  log: Log,
): void {
  let current = file;
  // What is sent to one before it listens is lost.
  const asked = new Set<Worker>();
  cluster.on('message', (worker, message: WorkerMessage) => {
    if (!('asks' in message)) return;
    asked.add(worker);
    send(worker, current);
  });
  cluster.on('exit', (worker) => asked.delete(worker));
  follower?.follow({
    take: async (next) => {
      for (const worker of asked) {
        const taken = await offer(worker, next);
        if (taken) current = next;
        else if (taken === false && current !== next) return;
      }
    },
    nothing: () => reportNothing(log),
    refused: (error) => reportRefused(error, log),
  });
}

/** Whether a worker takes a configuration; undefined if it ends before it has said so. */
function offer(worker: Worker, file: ConfigFile): Promise<boolean | undefined> {
  return new Promise((resolve) => {
    const settle = (taken: boolean | undefined) => {
      worker.off('message', answered).off('exit', ended);
      resolve(taken);
    };
    const answered = (message: WorkerMessage) => {
      if ('taken' in message) settle(message.taken);
    };
    const ended = () => settle(undefined);
    worker.on('message', answered).on('exit', ended);
    if (worker.isConnected()) send(worker, file);
    else ended();
  });
}

function send(worker: Worker, file: ConfigFile | undefined): void {
  // It may have exited by itself.
  worker.send({ config: file ?? null } satisfies ConfigMessage, () => {});
}

/**
 * In a worker: the configuration that it is to start with, undefined if there is no file, and then each later one.
 * Listens from when it is called.
 */
export function receivedConfigs(): AsyncGenerator<ConfigFile | undefined, undefined> {
  const messages = on(process, 'message');
  process.send?.({ asks: 'config' } satisfies WorkerMessage);
  return configsIn(messages);
}

async function* configsIn(messages: AsyncIterable<unknown[]>): AsyncGenerator<ConfigFile | undefined, undefined> {
  for await (const [message] of messages) {
    const { config } = message as Partial<ConfigMessage>;
    if (config !== undefined) yield config ?? undefined;
  }
  return undefined;
}

/** Tells the primary, from a worker, whether it has taken the last configuration that it received. */
export function answerTaken(taken: boolean): void {
  process.send?.({ taken } satisfies WorkerMessage);
}
