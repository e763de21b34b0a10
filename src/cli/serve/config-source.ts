import cluster, { type Worker } from 'node:cluster';
import { on } from 'node:events';
import type { ConfigFile } from '../../config/config-file.ts';
import type { ConfigFollower } from '../../config/config-follower.ts';
import type { Config } from '../../config/config.ts';
import { isKeysError } from '../../keys/basics/index.ts';
import type { Log } from '../../log.ts';

/** Logs that a configuration is now in use. */
export function reportTaken(config: Config, log: Log): void {
  const lists = Object.entries(config).flatMap(([name, list]) => (Array.isArray(list) ? [[name, list.length]] : []));
  const counts = { roles: Object.keys(config.roles).length, ...Object.fromEntries(lists) };
  log.info({ config: config.file, ...counts }, 'the configuration was loaded');
}

/** Logs that a configuration is not used, and why. */
export function reportRefused(error: unknown, log: Log): void {
  const reason = isKeysError(error) ? { code: error.code, faults: error.message.split('\n') } : { err: error };
  log.error(reason, 'the configuration was not loaded; the previous one stays in use');
}

/** Logs that there is nothing to reload. */
function reportNothing(log: Log): void {
  log.info({ signal: 'SIGHUP' }, 'there is nothing to reload');
}

/** The primary's answer to a worker: the configuration to start with, if there is one, or to switch to. */
interface ConfigMessage {
  config: ConfigFile | null;
}

/** A worker's message to the primary: a request for the configuration, or the result of the last one. */
type WorkerMessage = { asks: 'config' } | { taken: boolean };

/**
 * Follows the configuration file in the primary, so that all workers have the same. A version goes to one worker, and
 * to the others only if that one accepts it; a worker that starts later gets the last accepted one.
 */
export function followForWorkers(
  { file, follower }: { file: ConfigFile | undefined; follower: ConfigFollower | undefined },
  log: Log,
): void {
  let current = file;
  // A message sent to a worker before it listens is lost.
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

/** True if a worker accepts a configuration; undefined if it exits before it answers. */
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
  // The worker may have exited by itself.
  worker.send({ config: file ?? null } satisfies ConfigMessage, () => {});
}

/**
 * In a worker: the configuration to start with, undefined if there is no file, and then each later one. Listens from
 * the call on.
 */
function receivedConfigs(): AsyncGenerator<ConfigFile | undefined, undefined> {
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

/** Tells the primary, from a worker, whether the last configuration was accepted. */
function answerTaken(taken: boolean): void {
  process.send?.({ taken } satisfies WorkerMessage);
}

/** The configuration file that a server starts with, and the follower of its changes. */
export interface StartConfig {
  /** Undefined if there is none. */
  file: ConfigFile | undefined;
  /** Undefined for a user without a home folder who named no file. */
  follower: ConfigFollower | undefined;
}

/** The source of a server's configuration while it runs. */
export interface ConfigSource {
  /** The file at the start; undefined if there is none. */
  readonly first: ConfigFile | undefined;
  /** Passes on each later version, one after the other. @param take returns whether it was accepted */
  follow(take: (file: ConfigFile) => Promise<boolean>): void;
  stop(): void;
}

/**
 * Reads the configuration file of a server.
 * @param file the path that the user named
 * @throws KeysError CONFIG_…, USAGE
 */
export async function startConfig(file: string | undefined, env: NodeJS.ProcessEnv): Promise<StartConfig> {
  const [{ configLocation }, { ConfigFollower }] = await Promise.all([
    import('../../config/config-file.ts'),
    import('../../config/config-follower.ts'),
  ]);
  const location = configLocation(file, env);
  const follower = location && new ConfigFollower(location);
  return { file: follower?.read(), follower };
}

/**
 * Makes a function that reads the configuration again, on SIGHUP. It resolves once the configuration was accepted or
 * refused.
 */
export const reloadingOf =
  ({ follower }: StartConfig, log: Log) =>
  async (): Promise<void> => {
    if (follower) await follower.reload();
    else reportNothing(log);
  };

/** The configuration of a server of one process: its file, when it changes and on SIGHUP. */
export function ownConfig({ file, follower }: StartConfig, log: Log): ConfigSource {
  return {
    first: file,
    follow: (take) =>
      follower?.follow({
        take: async (next) => void (await take(next)),
        nothing: () => reportNothing(log),
        refused: (error) => reportRefused(error, log),
      }),
    stop: () => follower?.stop(),
  };
}

/** The configuration of a worker, from the primary. Listens from the call on. */
export async function configOfPrimary(): Promise<ConfigSource> {
  const versions = receivedConfigs();
  const { value: first } = await versions.next();
  const follow = async (take: (file: ConfigFile) => Promise<boolean>) => {
    for await (const file of versions) if (file) answerTaken(await take(file));
  };
  return { first, follow: (take) => void follow(take), stop: () => {} };
}
