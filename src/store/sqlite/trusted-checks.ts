import { setTimeout as delay } from 'node:timers/promises';

/**
 * How long a check of the file is trusted, by every process that has it open, in milliseconds. A change returns only
 * when all checks that were made before it are older.
 */
export const MAX_CHECK_AGE_MS = 1;

/** Waits until no process trusts a check of the file any more that it made before now. */
export async function outdateChecks(): Promise<void> {
  const changedAt = performance.now();
  // A timer may fire early, by less than a millisecond.
  while (performance.now() - changedAt <= MAX_CHECK_AGE_MS) await delay(MAX_CHECK_AGE_MS);
}
