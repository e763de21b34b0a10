import { setTimeout as sleep } from 'node:timers/promises';

/** How many keys are written at once: few enough that neither the transaction nor its parameters hold up other work. */
export const PIECE_KEYS = 250;
/** The pause after a piece, in multiples of the time it took. */
const PAUSE_FACTOR = 2;

/** Pauses for other work after a piece that began at a time of `performance.now`. */
export function pauseAfter(began: number): Promise<void> {
  return sleep((performance.now() - began) * PAUSE_FACTOR, undefined, { ref: false });
}
