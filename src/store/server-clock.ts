/** The clock of another machine, as far as its answers tell. */
export class ServerClock {
  /** By how much it is ahead of `performance.now`, in milliseconds. */
  #ahead = Number.NEGATIVE_INFINITY;

  /** In milliseconds since 1970. */
  now(): number {
    return Math.floor(performance.now() + this.#ahead);
  }

  /**
   * Takes an answer, which is as old as it took to arrive, at most.
   * @param time when it was made, in milliseconds since 1970
   * @param askedAt by `performance.now`
   */
  answered(time: number, askedAt: number): void {
    const atLeast = time - performance.now();
    this.#ahead = Math.min(Math.max(this.#ahead, atLeast), time - askedAt);
  }
}
