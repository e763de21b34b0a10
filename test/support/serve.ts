import { once } from 'node:events';
import { BIN, cleanEnv, startCli } from './process.ts';

export interface ServeProcess {
  url: string;
  pid: number;
  /** Its log so far. */
  readonly log: string;
  /** Sends it a signal. */
  kill(signal: NodeJS.Signals): void;
  /** Stops it with SIGTERM, or the given signal, and waits until it exits. */
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/** Starts the built `serve` on a store, by default on a free port, as a process of its own. @param bin another build */
export function startServe(
  database: string,
  args: readonly string[] = ['--port', '0'],
  env: NodeJS.ProcessEnv = {},
  bin = BIN,
): Promise<ServeProcess> {
  return startListening(['serve', '--database', database, ...args], env, bin);
}

/** Starts the built `edge` of an origin on a free port, as a process of its own. */
export function startEdge(origin: string, tokenFile: string, ...args: readonly string[]): Promise<ServeProcess> {
  return startListening(['edge', '--origin', origin, '--token-file', tokenFile, '--port', '0', ...args], {});
}

/** Starts a built command that serves. */
export async function startListening(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  bin = BIN,
): Promise<ServeProcess> {
  const child = startCli(args, { env: cleanEnv({ LOG_LEVEL: 'error', ...env }) }, bin);
  const ended = once(child, 'exit');
  let log = '';
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (log += text));
  const line = String((await Promise.race([once(child.stdout!, 'data'), ended]))[0]);
  const [, url] = /^Listening on (\S+)\n$/.exec(line) ?? [];
  if (url === undefined) throw new Error(`${args[0]} did not start: ${line}`);
  return {
    url,
    pid: child.pid!,
    get log() {
      return log;
    },
    kill: (signal) => void child.kill(signal),
    async stop(signal = 'SIGTERM') {
      child.kill(signal);
      await ended;
    },
  };
}
