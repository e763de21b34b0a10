import { KeysError } from '../../keys/errors.ts';

/** Runs one piece of work at a time, in order. */
export class Mutex {
  #last: Promise<unknown> = Promise.resolve();

  /** Runs `work` in its turn. @throws KeysError STORE_LOCKED if that takes longer than `waitMs` milliseconds */
  run<Result>(waitMs: number, work: () => Promise<Result>): Promise<Result> {
    const deadline = performance.now() + waitMs;
    const turn = this.#last.then(() => {
      if (performance.now() > deadline)
        throw new KeysError('STORE_LOCKED', 'The key store has too many changes waiting. Try again in a moment.');
      return work();
    });
    this.#last = turn.catch(() => {});
    return turn;
  }
}
