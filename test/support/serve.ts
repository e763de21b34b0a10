import { once } from 'node:events';
import { BIN, cleanEnv, startCli } from './process.ts';

export interface ServeProcess {
  url: string;
  pid: number;
  /** The log so far. */
  readonly log: string;
  kill(signal: NodeJS.Signals): void;
  /** Stops it with SIGTERM or another signal, and waits for its exit. */
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/** Starts the built `serve` in a process, by default on a free port. @param bin another build */
export function startServe(
  database: string,
  args: readonly string[] = ['--port', '0'],
  env: NodeJS.ProcessEnv = {},
  bin = BIN,
): Promise<ServeProcess> {
  return startListening(['serve', '--database', database, ...args], env, bin);
}

/** Starts the built `edge` of an origin in a process, on a free port. */
export function startEdge(origin: string, tokenFile: string, ...args: readonly string[]): Promise<ServeProcess> {
  return startListening(['edge', '--origin', origin, '--token-file', tokenFile, '--port', '0', ...args], {});
}

/** Starts a built command that listens. */
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
