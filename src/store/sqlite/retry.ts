import { setTimeout as delay } from 'node:timers/promises';
import { isLocked } from './sqlite-errors.ts';

/**
 * Does something again while another process holds the lock, for `lockWaitMs` milliseconds at most. Between the tries
 * the event loop is free, which the driver's own wait would block.
 */
export async function retryWhileLocked<Result>(lockWaitMs: number, work: () => Promise<Result>): Promise<Result> {
  const deadline = performance.now() + lockWaitMs;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isLocked(error) || performance.now() > deadline) throw error;
      await delay(5 + Math.random() * 20);
    }
  }
}
