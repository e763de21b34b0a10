/**
 * Wakes waiting callers. A wait that times out leaves nothing behind, whereas `Promise.race` with a lasting promise
 * keeps all its racers in memory.
 */
export class Wakeup {
  readonly #waiting = new Set<() => void>();

  /** Resolves at the next `wake`, after some milliseconds, or when aborted, whichever comes first. */
  wait(withinMs = Infinity, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted || withinMs <= 0) return Promise.resolve();
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        this.#waiting.delete(end);
        signal?.removeEventListener('abort', end);
        resolve();
      };
      // Does not keep the process alive.
      const timer = withinMs < Infinity ? setTimeout(end, withinMs).unref() : undefined;
      this.#waiting.add(end);
      signal?.addEventListener('abort', end);
    });
  }

  /** The number of waiting callers. */
  get size(): number {
    return this.#waiting.size;
  }

  wake(): void {
    for (const end of this.#waiting) end();
  }
}
