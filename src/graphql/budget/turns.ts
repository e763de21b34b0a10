import { nextTurn } from '../../keys/turns.ts';

/** So many items of lists are computed before a request looks whether its turn is over. */
export const GROUP_SIZE = 20;

/** How long requests compute until the event loop gets a turn, in milliseconds. */
const SLICE_MS = 5;

/**
 * Divides the time of long requests into slices, so that other requests wait for one slice and not for a whole request.
 * All requests of a server share the slices, and continue in the order in which they were interrupted.
 */
export class Turns {
  readonly #sliceMs: number;
  #endsAt = 0;
  #waiting = 0;
  #last: Promise<void> = Promise.resolve();

  constructor(sliceMs = SLICE_MS) {
    this.#sliceMs = sliceMs;
  }

  /** A request starts to compute. */
  begin(): void {
    if (this.#waiting === 0) this.#endsAt = performance.now() + this.#sliceMs;
  }

  /** Whether to wait for `next` before computing more. */
  get isOver(): boolean {
    return this.#waiting > 0 || this.isTimeUp;
  }

  /** The same for whoever has just had a turn: others who wait do not end it. */
  get isTimeUp(): boolean {
    return performance.now() >= this.#endsAt;
  }

  /** Resolves when it is the caller's turn. */
  next(): Promise<void> {
    this.#waiting += 1;
    this.#last = this.#take(this.#last);
    return this.#last;
  }

  async #take(previous: Promise<void>): Promise<void> {
    await previous;
    // What the turn before has set in motion comes first.
    await new Promise<void>((resolve) => {
      process.nextTick(resolve);
    });
    if (performance.now() >= this.#endsAt) {
      await nextTurn();
      this.#endsAt = performance.now() + this.#sliceMs;
    }
    this.#waiting -= 1;
  }
}
