import { KeysError } from './keys/errors.ts';
import { redactSecrets } from './keys/secret/secret.ts';
import { printableJson } from './keys/text.ts';

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

/**
 * Opens a log on stderr, in JSON lines. Secrets are redacted and hidden characters escaped in the finished line, so
 * that no field or stack trace can leak a secret, or deceive a terminal that shows it.
 */
export async function openLog(level: LogLevel): Promise<Log> {
  if (level === 'silent') return NO_LOG;
  const { pino } = await import('pino');
  const stderr = pino.destination({ dest: 2, sync: true });
  stderr.on('error', () => {}); // A closed stderr must not end the program.
  const log: Log = pino(
    { level, base: { name: 'svc-api', pid: process.pid } },
    { write: (line) => void stderr.write(printableJson(redactSecrets(line))) },
  );
  return log;
}
