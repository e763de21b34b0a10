import { setTimeout as delay } from 'node:timers/promises';

interface RetryOptions {
  /** True if another attempt can succeed, after this many. */
  isRetryable: (error: unknown, attempts: number) => boolean;
  /** The pause before the next attempt, in milliseconds. Default: 5 to 15, at random. */
  delayMs?: (attempts: number) => number;
}

/**
 * Repeats work until it succeeds or fails for good. The event loop is free between attempts.
 * @throws errors of `work`
 */
export async function retry<Result>(
  work: () => Promise<Result>,
  { isRetryable, delayMs = () => 5 + Math.random() * 10 }: RetryOptions,
): Promise<Result> {
  for (let attempts = 1; ; attempts += 1) {
    try {
      return await work();
    } catch (error) {
      if (!isRetryable(error, attempts)) throw error;
      await delay(delayMs(attempts));
    }
  }
}
