import { setTimeout as delay } from 'node:timers/promises';
import { KeysError } from '../keys/errors.ts';

/** Runs one piece of work at a time, in the order in which they came. */
export class Mutex {
  #last: Promise<unknown> = Promise.resolve();

  /**
   * Runs the work when all earlier work has ended.
   * @throws KeysError STORE_LOCKED as soon as it has waited for `waitMs` milliseconds; what `work` throws
   */
  run<Result>(waitMs: number, work: () => Promise<Result>): Promise<Result> {
    let isExpired = false;
    const turn = this.#last.then(() => !isExpired);
    const result = new Promise<Result>((resolve, reject) => {
      const timer = setTimeout(() => {
        isExpired = true;
        reject(
          new KeysError('STORE_LOCKED', 'The key store has too many changes to make at once. Try again in a moment.'),
        );
      }, waitMs);
      this.#last = turn
        .then((isDue) => {
          clearTimeout(timer);
          return isDue ? work().then(resolve, reject) : undefined;
        })
        .catch(reject);
    });
    return result;
  }
}

export interface RetryOptions {
  /** Whether another attempt may succeed, after this many. */
  isRetryable: (error: unknown, attempts: number) => boolean;
  /** How long to wait before the next attempt, in milliseconds. Default: 5 to 25, at random. */
  delayMs?: (attempts: number) => number;
}

/**
 * Repeats work until it succeeds or fails for good. Between the attempts the event loop is free.
 * @throws what `work` throws
 */
export async function retry<Result>(
  work: () => Promise<Result>,
  { isRetryable, delayMs = () => 5 + Math.random() * 20 }: RetryOptions,
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
