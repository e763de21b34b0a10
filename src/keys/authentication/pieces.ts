import { setTimeout as sleep } from 'node:timers/promises';

/** How many keys are written at once: neither their transaction nor making its parameters keeps others waiting. */
export const PIECE_KEYS = 250;
/** How many times as long as a piece took others have their turns behind it. */
const PAUSE_FACTOR = 2;

/** Lets others have their turns after a piece of work that began at a time of `performance.now`. */
export function pauseAfter(began: number): Promise<void> {
  return sleep((performance.now() - began) * PAUSE_FACTOR, undefined, { ref: false });
}
