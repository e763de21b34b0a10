import { type Log, NO_LOG } from '../../src/log.ts';

export interface LogEntry {
  level: string;
  message: string;
  fields: Record<string, unknown>;
}

/** A log that keeps what it is given. */
export function recordedLog(): { log: Log; entries: LogEntry[] } {
  const entries: LogEntry[] = [];
  const levels = Object.keys(NO_LOG).map((level) => [
    level,
    (fields: object, message: string) => void entries.push({ level, message, fields: { ...fields } }),
  ]);
  return { log: Object.fromEntries(levels) as Log, entries };
}
