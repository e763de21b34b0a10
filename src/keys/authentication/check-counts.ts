import type { RefusalReason } from './authenticate.ts';

/** How the secrets of requests were checked since the program started. */
export interface CheckCounts {
  /** Those that were remembered. */
  remembered: number;
  /** Those that the store was asked for, and accepted. */
  found: number;
  /** Those that were refused, by the reason. */
  readonly refused: Record<RefusalReason, number>;
  /** Those that were forgotten to make room for others. */
  evicted: number;
}

/** Before the first request. */
export function noChecks(): CheckCounts {
  const refused = { malformed: 0, unknown: 0, damaged: 0, disabled: 0, expired: 0, rotated: 0 };
  return { remembered: 0, found: 0, refused, evicted: 0 };
}
