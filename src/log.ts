import type { Writable } from 'node:stream';
import { checkOptions, KeysError, oneOf, printableJson, required, type Step, STEPS } from './keys/basics/index.ts';
import { redactSecrets } from './keys/secret/index.ts';

/**
 * Makes writes to a stream return at once, even to a terminal, where Node's writes block: if Ctrl-S pauses it, or its
 * window does not respond, the whole process would wait.
 */
export function neverBlock(stream: Writable): void {
  // Node has no documented way. Without this one, writes to a terminal block.
  (stream as { _handle?: { setBlocking?: (blocks: boolean) => void } })._handle?.setBlocking?.(false);
}

/** The most bytes that wait for the reader. */
const MAX_WAITING_BYTES = 1024 * 1024;

/**
 * Writes lines to a stream without waiting for its reader. If too many lines wait, further ones are dropped and counted
 * until the waiting ones have been read.
 */
class LogOutput {
  readonly #stream: Writable;
  readonly #reportDropped: (lines: number) => void;
  #dropped = 0;

  /** @param reportDropped called with the number of dropped lines once there is room again */
  constructor(stream: Writable, reportDropped: (lines: number) => void) {
    this.#stream = stream;
    this.#reportDropped = reportDropped;
    // Otherwise Node writes all waiting lines at once, and other processes on the same pipe write into the middle.
    (stream as { _writev?: unknown })._writev = undefined;
    // A closed stream must not end the program.
    if (stream.listenerCount('error') === 0) stream.on('error', () => {});
  }

  write(line: string): void {
    // Each time, since a child process that inherits the terminal makes it block again.
    neverBlock(this.#stream);
    if (this.#dropped === 0 && this.#stream.writableLength < MAX_WAITING_BYTES) return void this.#stream.write(line);
    if (this.#dropped === 0) this.#stream.once('drain', () => this.#resume());
    this.#dropped += 1;
  }

  /** Waits until all lines have been read, but no longer than this. Returns true if they have. */
  async drained(withinMs: number): Promise<boolean> {
    if (this.#stream.writableLength === 0) return true;
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), withinMs);
      // Written after all others.
      this.#stream.write('', () => {
        clearTimeout(timer);
        resolve(true);
      });
    });
  }

  #resume(): void {
    const dropped = this.#dropped;
    this.#dropped = 0;
    this.#reportDropped(dropped);
  }
}

/** The levels of the log, most verbose first. */
export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
/** The least severe messages that are logged. */
export type LogLevel = (typeof LOG_LEVELS)[number];

/** A log: one function per level, which takes fields and a message, as in pino. */
export type Log = Record<Exclude<LogLevel, 'silent'>, (fields: object, message: string) => void>;

const ignore: Log['info'] = () => {};
/** Logs nothing. */
export const NO_LOG: Log = {
  trace: ignore,
  debug: ignore,
  info: ignore,
  warn: ignore,
  error: ignore,
  fatal: ignore,
};

/** The level in `LOG_LEVEL`, if it is set. @throws KeysError USAGE if it is not a level */
export function logLevelOf(env: NodeJS.ProcessEnv): LogLevel | undefined {
  const wanted = env['LOG_LEVEL']?.trim().toLowerCase();
  if (!wanted) return undefined;
  const level = LOG_LEVELS.find((name) => name === wanted);
  if (!level)
    throw new KeysError('USAGE', `LOG_LEVEL is "${redactSecrets(wanted)}". The levels are ${LOG_LEVELS.join(', ')}.`);
  return level;
}

/** A log that is written without waiting for its reader. */
export interface OpenLog extends Log {
  /** Waits until all lines have been read, but no longer than this, in milliseconds. Resolves to true if they have. */
  drained(withinMs: number): Promise<boolean>;
  /** Stops logging the steps of this process, which it does at levels debug and trace. */
  close(): void;
}

/**
 * Opens a log on stderr, in JSON lines. Secrets are redacted and hidden characters escaped in the finished line, so
 * that no field or stack trace can leak a secret, or deceive a terminal that shows it. Nothing waits for the reader: if
 * it falls behind by 1 MiB, lines are dropped, and their number is logged. At level debug, it also logs the steps of
 * this process and their durations, until it is closed; at level trace, also each statement of the store, without its
 * values.
 * @throws KeysError OPTION_INVALID
 */
export async function openLog(level: LogLevel): Promise<OpenLog> {
  checkOptions<{ level: LogLevel }>('openLog', { level }, { level: required(oneOf(...LOG_LEVELS)) });
  if (level === 'silent') return { ...NO_LOG, drained: async () => true, close: () => {} };
  const { pino } = await import('pino');
  const report = (dropped: number) => log.error({ dropped }, `${dropped} lines dropped`);
  const output = new LogOutput(process.stderr, report);
  const base = { name: 'svc-api', pid: process.pid };
  // Node adds the bytes that its HTTP parser refused, which can hold credentials.
  const redact = { paths: ['err.rawPacket'], remove: true };
  const log: Log = pino({ level, base, redact }, { write: (line) => output.write(printableJson(redactSecrets(line))) });
  const isLogged = (wanted: LogLevel) => LOG_LEVELS.indexOf(level) <= LOG_LEVELS.indexOf(wanted);
  const followed = (['debug', 'trace'] as const).filter(isLogged).map((at) => {
    const follow = (step: unknown) => log[at]((step as Step).fields, (step as Step).message);
    STEPS[at].subscribe(follow);
    return () => STEPS[at].unsubscribe(follow);
  });
  return Object.assign(log, {
    drained: (withinMs: number) => output.drained(withinMs),
    close: () => {
      for (const end of followed) end();
    },
  });
}
