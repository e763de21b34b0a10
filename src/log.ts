import { KeysError } from './keys/errors.ts';
import { checkOptions, oneOf, required, yesOrNo } from './keys/options.ts';
import { redactSecrets } from './keys/secret/secret.ts';
import { type Step, STEPS } from './keys/steps.ts';
import { printableJson } from './keys/text.ts';
import { LogOutput } from './log-output.ts';

export { neverBlock } from './log-output.ts';

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

/** Takes lines of level info that are composed already, which costs less than to let the log compose them. */
export interface FinishedLines {
  /** What each line has after its time: the name of the program, and its process. */
  readonly origin: string;
  /**
   * Writes a line, together with others that come within some milliseconds. Nothing in it is looked at.
   * @param line in ASCII, with its line feed, without secrets
   */
  add(line: string): void;
}

/** A log that is written without waiting for its reader. */
export interface OpenLog extends Log {
  /** Undefined where lines of level info are not logged. */
  readonly finished?: FinishedLines | undefined;
  /** Waits until all lines have been read, but no longer than this, in milliseconds; tells whether they have. */
  drained(withinMs: number): Promise<boolean>;
  /** Ends what it logs by itself at levels debug and trace. */
  close(): void;
}

/**
 * Opens a log on stderr, in JSON lines. Secrets are redacted and hidden characters escaped in the finished line, so
 * that no field or stack trace can leak a secret, or deceive a terminal that shows it. Nothing waits for the reader: if
 * it falls behind by 1 MiB, lines are dropped, and their number is logged. At level debug it also logs what this
 * process does, and how long that takes, until it is closed; at level trace, each statement of the store, without its
 * values.
 * @param options.isShared whether other processes write to it, too. Default: no
 * @throws KeysError OPTION_INVALID
 */
export async function openLog(level: LogLevel, options: { isShared?: boolean } = {}): Promise<OpenLog> {
  checkOptions<{ level: LogLevel }>('openLog', { level }, { level: required(oneOf(...LOG_LEVELS)) });
  checkOptions<typeof options>('openLog', options, { isShared: yesOrNo });
  const { isShared = false } = options;
  if (level === 'silent') return { ...NO_LOG, drained: async () => true, close: () => {} };
  const { pino } = await import('pino');
  const report = (dropped: number) => log.error({ dropped }, `${dropped} lines dropped`);
  const output = new LogOutput(process.stderr, isShared, report);
  const base = { name: 'svc-api', pid: process.pid };
  const log: Log = pino({ level, base }, { write: (line) => output.write(printableJson(redactSecrets(line))) });
  const finished: FinishedLines = {
    origin: JSON.stringify(base).slice(1, -1),
    add: (line) => output.gather(line),
  };
  const isLogged = (wanted: LogLevel) => LOG_LEVELS.indexOf(level) <= LOG_LEVELS.indexOf(wanted);
  const followed = (['debug', 'trace'] as const).filter(isLogged).map((at) => {
    const follow = (step: unknown) => log[at]((step as Step).fields, (step as Step).message);
    STEPS[at].subscribe(follow);
    return () => STEPS[at].unsubscribe(follow);
  });
  return Object.assign(log, {
    finished: isLogged('info') ? finished : undefined,
    drained: (withinMs: number) => output.drained(withinMs),
    close: () => {
      for (const end of followed) end();
    },
  });
}
