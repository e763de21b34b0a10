/**
 * Wakes those who wait for something to happen. One that has waited for long enough leaves nothing behind, where a race
 * with a promise that stays keeps what each of its racers needs.
 */
export class Wakeup {
  readonly #waiting = new Set<() => void>();

  /** Resolves with the next `wake`, after some time in milliseconds, or once it is aborted, whatever comes first. */
  wait(withinMs = Infinity, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted || withinMs <= 0) return Promise.resolve();
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        this.#waiting.delete(end);
        signal?.removeEventListener('abort', end);
        resolve();
      };
      // Nothing is kept alive by it.
      const timer = withinMs < Infinity ? setTimeout(end, withinMs).unref() : undefined;
      this.#waiting.add(end);
      signal?.addEventListener('abort', end);
    });
  }

  /** How many wait. */
  get size(): number {
    return this.#waiting.size;
  }

  wake(): void {
    for (const end of this.#waiting) end();
  }
}
