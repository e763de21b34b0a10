import { spawn } from 'node:child_process';
import { type Log, neverBlock, type OpenLog } from '../../log.ts';

export const STOP_SIGNALS = ['SIGINT', 'SIGTERM'] as const;

export interface StopSignal {
  /** Resolves with the reason when the server should stop. A second signal ends the process at once. */
  readonly received: Promise<string>;
  /** Called when there can be requests to finish. Before that, a signal ends the process at once. */
  serving(): void;
}

/** Listens to SIGINT and SIGTERM, which have no default effect on the first process of a container. */
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
 * Waits until the reader of the log has its last lines, up to a time limit.
 * @param exit the exit code of a failure, if it is not set yet
 */
export async function leave(log: OpenLog, exit: number | undefined): Promise<void> {
  const isRead = await log.drained(FLUSH_MS);
  if (!isRead || process.stdout.writableLength > 0) process.exit(exit);
}

/** Prints the address of the server. Neither waits for a reader of stdout nor fails without one. */
export function announce(url: string): void {
  if (process.stdout.listenerCount('error') === 0) process.stdout.on('error', () => {});
  neverBlock(process.stdout);
  process.stdout.write(`Listening on ${url}\n`);
}

/** The service manager (systemd). */
interface ServiceManager {
  /** Called when requests are answered. */
  ready(status: string): void;
  /** Reads the configuration again. */
  reload(read: () => Promise<void>): Promise<void>;
  stopping(): void;
}

const NOBODY: ServiceManager = { ready() {}, reload: (read) => read(), stopping() {} };

/** Node has no datagrams on Unix sockets, but every systemd includes this program. */
const PROGRAM = 'systemd-notify';
const TELL_MS = 5000;
/** The longest timer of Node: a longer one fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** The service manager of this process: systemd if NOTIFY_SOCKET is set; otherwise none. */
export function serviceManager(env: NodeJS.ProcessEnv, log: Log): ServiceManager {
  return env['NOTIFY_SOCKET'] ? new Systemd(env, log) : NOBODY;
}

/** Notifies systemd by the protocol of sd_notify(3). The first failure is logged, and stops nothing. */
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
    // In microseconds of CLOCK_MONOTONIC, like Node's clock.
    if (this.#isReady) this.#notify('RELOADING=1', `MONOTONIC_USEC=${process.hrtime.bigint() / 1000n}`);
    await read();
    if (this.#isReady) this.#notify('READY=1');
  }

  stopping(): void {
    clearInterval(this.#pings);
    this.#notify('STOPPING=1');
  }

  /** Notifies the watchdog twice per period, while the event loop runs (sd_watchdog_enabled(3)). */
  #beginToPing(): void {
    const { WATCHDOG_USEC: period, WATCHDOG_PID: pid } = this.#env;
    const everyMs = Number(period) / 1000 / 2;
    if (!(everyMs > 0) || (pid && Number(pid) !== process.pid)) return;
    this.#pings = setInterval(() => this.#ping(), Math.min(everyMs, MAX_TIMER_MS)).unref();
  }

  /** Skips a ping while one is running: slow ones would pile up, and delay later notifications. */
  #ping(): void {
    if (this.#isPinging) return;
    this.#isPinging = true;
    this.#notify('WATCHDOG=1');
    void this.#notified.then(() => (this.#isPinging = false));
  }

  /** One after the other, since the last one counts. */
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
