import { setTimeout as delay } from 'node:timers/promises';

/** Waits until a condition holds. Pauses between checks leave the processor to others. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await delay(5);
}
