import { spawn } from 'node:child_process';
import { type Log, neverBlock, type OpenLog } from '../../log.ts';

export const STOP_SIGNALS = ['SIGINT', 'SIGTERM'] as const;

export interface StopSignal {
  /** Resolves with the reason once the server is to stop. A second signal ends the process at once. */
  readonly received: Promise<string>;
  /** Says that there may be requests to finish from now on. Until then, a signal ends the process at once. */
  serving(): void;
}

/** Listens to SIGINT and SIGTERM, on which the first process of a container would do nothing by itself. */
export function listenForStop(): StopSignal {
  let isServing = false;
  const received = new Promise<string>((resolve) => {
    const stop = (signal: NodeJS.Signals) => {
      if (!isServing) process.exit(0);
      for (const name of STOP_SIGNALS) {
        process.off(name, stop);
        process.once(name, () => process.exit(name === 'SIGINT' ? 130 : 143));
      }
      resolve(signal);
    };
    for (const name of STOP_SIGNALS) process.on(name, stop);
  });
  return {
    received,
    serving() {
      isServing = true;
    },
  };
}

export const FLUSH_MS = 1000;

/**
 * Lets the reader of the log have its last lines. A reader that does not read keeps no process from ending.
 * @param exit the exit code of a failure, which nobody has set yet
 */
export async function leave(log: OpenLog, exit: number | undefined): Promise<void> {
  const isRead = await log.drained(FLUSH_MS);
  if (!isRead || process.stdout.writableLength > 0) process.exit(exit);
}

/** Prints where the server listens. It neither waits for a reader of stdout nor fails without one. */
export function announce(url: string): void {
  if (process.stdout.listenerCount('error') === 0) process.stdout.on('error', () => {});
  neverBlock(process.stdout);
  process.stdout.write(`Listening on ${url}\n`);
}

/** Who has started this process, and follows what becomes of it. */
interface ServiceManager {
  /** Requests are answered from now on. */
  ready(status: string): void;
  /** Reads the configuration again. */
  reload(read: () => Promise<void>): Promise<void>;
  stopping(): void;
}

const NOBODY: ServiceManager = { ready() {}, reload: (read) => read(), stopping() {} };

/** Node has no datagrams on Unix sockets, and whoever has systemd has this. */
const PROGRAM = 'systemd-notify';
const TELL_MS = 5000;
/** The longest that a timer of Node takes: a longer one runs out at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** The service manager of this process: systemd if it wants to be told, by NOTIFY_SOCKET; otherwise nobody. */
export function serviceManager(env: NodeJS.ProcessEnv, log: Log): ServiceManager {
  return env['NOTIFY_SOCKET'] ? new Systemd(env, log) : NOBODY;
}

/** Tells systemd by the protocol of sd_notify(3). What cannot be told is logged once, and stops nothing. */
class Systemd implements ServiceManager {
  readonly #env: NodeJS.ProcessEnv;
  readonly #log: Log;
  #notified: Promise<void> = Promise.resolve();
  #isReady = false;
  #pings: NodeJS.Timeout | undefined;
  #isPinging = false;
  #hasFailed = false;

  constructor(env: NodeJS.ProcessEnv, log: Log) {
    this.#env = env;
    this.#log = log;
  }

  ready(status: string): void {
    this.#notify('READY=1', `STATUS=${status}`);
    this.#beginToPing();
    this.#isReady = true;
  }

  async reload(read: () => Promise<void>): Promise<void> {
    // In microseconds, by CLOCK_MONOTONIC as Node's clock is.
    if (this.#isReady) this.#notify('RELOADING=1', `MONOTONIC_USEC=${process.hrtime.bigint() / 1000n}`);
    await read();
    if (this.#isReady) this.#notify('READY=1');
  }

  stopping(): void {
    clearInterval(this.#pings);
    this.#notify('STOPPING=1');
  }

  /** Says twice in each period of the watchdog that turns come and go (sd_watchdog_enabled(3)). */
  #beginToPing(): void {
    const { WATCHDOG_USEC: period, WATCHDOG_PID: pid } = this.#env;
    const everyMs = Number(period) / 1000 / 2;
    if (!(everyMs > 0) || (pid && Number(pid) !== process.pid)) return;
    this.#pings = setInterval(() => this.#ping(), Math.min(everyMs, MAX_TIMER_MS)).unref();
  }

  /** One that takes long is not waited for by others: they would be more and more, and what comes after them late. */
  #ping(): void {
    if (this.#isPinging) return;
    this.#isPinging = true;
    this.#notify('WATCHDOG=1');
    void this.#notified.then(() => (this.#isPinging = false));
  }

  /** One after the other: what comes last counts. */
  #notify(...assignments: readonly string[]): void {
    this.#notified = this.#notified.then(() => this.#run(assignments)).catch((error: unknown) => this.#failed(error));
  }

  #run(assignments: readonly string[]): Promise<void> {
    return new Promise((resolve, reject) => {
      const child = spawn(PROGRAM, assignments, { env: this.#env, stdio: 'ignore', timeout: TELL_MS });
      child.unref();
      child.once('error', reject);
      child.once('exit', (code, signal) => {
        if (code === 0) resolve();
        else reject(new Error(`${PROGRAM} ended with ${signal ?? code}`));
      });
    });
  }

  #failed(error: unknown): void {
    if (!this.#hasFailed)
      this.#log.warn({ err: error }, `systemd is not notified of the state of this process: ${PROGRAM} cannot be run`);
    this.#hasFailed = true;
  }
}
