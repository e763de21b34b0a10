import { setTimeout as delay } from 'node:timers/promises';
import { isLocked } from './sqlite-errors.ts';

/**
 * Retries `work` while another process holds the lock, for at most `lockWaitMs` milliseconds. Unlike the driver's own
 * wait, it does not block the event loop between the attempts.
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
