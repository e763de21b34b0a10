import type { ApiKey } from './api-key.ts';

export const STATUSES = ['ACTIVE', 'DISABLED', 'EXPIRED'] as const;
/** The state of a key. Only ACTIVE keys are accepted. A disabled key that has expired is EXPIRED. */
export type Status = (typeof STATUSES)[number];

/**
 * A key's status at a time in milliseconds since 1970. It expires at the instant `expiresAt`. A damaged key is
 * DISABLED, because its expiry is not reliable.
 */
export function statusOf(
  { expiresAt, disabledAt, damaged }: Pick<ApiKey, 'expiresAt' | 'disabledAt' | 'damaged'>,
  now: number,
): Status {
  if (damaged) return 'DISABLED';
  if (expiresAt !== null && expiresAt <= now) return 'EXPIRED';
  return disabledAt === null ? 'ACTIVE' : 'DISABLED';
}
