import { type Log, LOG_LEVELS } from '../../src/log.ts';

export interface LogLine {
  level: string;
  fields: object;
  message: string;
}

/** A log that collects its lines. */
export function collectingLog(): { log: Log; lines: LogLine[] } {
  const lines: LogLine[] = [];
  const entries = LOG_LEVELS.map((level) => [
    level,
    (fields: object, message: string) => lines.push({ level, fields, message }),
  ]);
  return { log: Object.fromEntries(entries) as Log, lines };
}

/** The fields of a log line without the request id. */
export function withoutRequestId(fields: object): object {
  const { requestId: _, ...others } = fields as { requestId?: string };
  return others;
}
