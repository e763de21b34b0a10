import { KeysError } from './keys/errors.ts';
import { redactSecrets } from './keys/secret/secret.ts';

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

type Write = (fields: object, message: string) => void;
/** What the program logs to: JSON lines, with every secret cut to its prefix. */
export type Log = Record<Exclude<LogLevel, 'silent'>, Write>;

const nothing: Write = () => {};
/** Logs nothing. */
export const NO_LOG: Log = {
  trace: nothing,
  debug: nothing,
  info: nothing,
  warn: nothing,
  error: nothing,
  fatal: nothing,
};

/** The level that `LOG_LEVEL` asks for, if it does. @throws KeysError USAGE when it is no level */
export function logLevelOf(env: NodeJS.ProcessEnv): LogLevel | undefined {
  const wanted = env['LOG_LEVEL']?.trim().toLowerCase();
  if (!wanted) return undefined;
  const level = LOG_LEVELS.find((name) => name === wanted);
  if (!level)
    throw new KeysError('USAGE', `LOG_LEVEL is "${redactSecrets(wanted)}". The levels are ${LOG_LEVELS.join(', ')}.`);
  return level;
}

/** Opens a log on stderr. Secrets are cut in the finished line, so that no field or stack can hold one. */
export async function openLog(level: LogLevel): Promise<Log> {
  if (level === 'silent') return NO_LOG;
  const { pino } = await import('pino');
  const stderr = pino.destination({ dest: 2, sync: true });
  stderr.on('error', () => {}); // A log that nobody reads any more must not end the program.
  const log: Log = pino(
    { level, base: { name: 'svc-api', pid: process.pid } },
    { write: (line) => void stderr.write(redactSecrets(line)) },
  );
  return log;
}
