import { KeysError } from '../../keys/errors.ts';

/** Lets one piece of work in after the other. */
export class Mutex {
  #last: Promise<unknown> = Promise.resolve();

  /** Does the work when it is its turn. @throws KeysError STORE_LOCKED when that does not come within so many milliseconds */
  run<Result>(wait: number, work: () => Promise<Result>): Promise<Result> {
    const deadline = performance.now() + wait;
    const turn = this.#last.then(() => {
      if (performance.now() > deadline)
        throw new KeysError(
          'STORE_LOCKED',
          'The key store has too many changes to make at once. Try again in a moment.',
        );
      return work();
    });
    this.#last = turn.catch(() => {});
    return turn;
  }
}
