import type { ApiKey } from './api-key.ts';

export const STATUSES = ['ACTIVE', 'DISABLED', 'EXPIRED'] as const;
/** The state of a key, which is accepted only if ACTIVE. An expired key is EXPIRED even if it is disabled as well. */
export type Status = (typeof STATUSES)[number];

/**
 * A key's status at a time in milliseconds since 1970. It is expired from the instant `expiresAt` on. A damaged key is
 * DISABLED: its expiry cannot be relied on.
 */
export function statusOf(
  { expiresAt, disabledAt, damaged }: Pick<ApiKey, 'expiresAt' | 'disabledAt' | 'damaged'>,
  now: number,
): Status {
  if (damaged) return 'DISABLED';
  if (expiresAt !== null && expiresAt <= now) return 'EXPIRED';
  return disabledAt === null ? 'ACTIVE' : 'DISABLED';
}
