import { setTimeout as delay } from 'node:timers/promises';

/** Waits until a condition holds. Between the checks the processor is left to what is waited for. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await delay(5);
}
