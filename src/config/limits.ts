import { type DocumentPath, type DocumentReader, isRecord } from '../keys/document.ts';
import { parseLimits } from '../keys/limit.ts';
import { type Config, DEFAULT_CONFIG } from './config.ts';

export const LIMITS_FIELDS = ['default', 'failedCredentials'] as const;

/** Reads the limits of keys that have none of their own, and of failed credentials. */
export function readLimits(reader: DocumentReader, value: unknown): Config['limits'] {
  if (value === undefined) return DEFAULT_CONFIG.limits;
  if (!isRecord(value)) {
    reader.report(['limits'], 'The field "limits" must be a map with the fields "default" and "failedCredentials".');
    return DEFAULT_CONFIG.limits;
  }
  const { default: all, failedCredentials: failed } = reader.knownFields(value, ['limits'], LIMITS_FIELDS);
  return {
    default: reader.parsedList(all, ['limits', 'default'], parseLimits),
    failedCredentials:
      failed === undefined
        ? DEFAULT_CONFIG.limits.failedCredentials
        : readLimit(reader, failed, ['limits', 'failedCredentials']),
  };
}

function readLimit(reader: DocumentReader, value: unknown, path: DocumentPath): string {
  const text = reader.text(value, path);
  const { values, issues } = parseLimits(text === undefined ? [] : [text]);
  for (const { message } of issues) reader.report(path, message);
  return values[0] ?? '';
}
