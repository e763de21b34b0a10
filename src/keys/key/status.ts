import type { ApiKey } from './api-key.ts';

export const STATUSES = ['ACTIVE', 'DISABLED', 'EXPIRED'] as const;
/** Whether a key is let in. One that has expired is EXPIRED, whether it was disabled or not. */
export type Status = (typeof STATUSES)[number];

/** A key's status at a time, in milliseconds since 1970: it is expired from the very instant at which it ends. */
export function statusOf({ expiresAt, disabledAt }: Pick<ApiKey, 'expiresAt' | 'disabledAt'>, now: number): Status {
  if (expiresAt !== null && expiresAt <= now) return 'EXPIRED';
  return disabledAt === null ? 'ACTIVE' : 'DISABLED';
}
