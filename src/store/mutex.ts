import { KeysError } from '../keys/basics/index.ts';

/** Runs one piece of work at a time, in the order of the calls. */
export class Mutex {
  #last: Promise<unknown> = Promise.resolve();

  /**
   * Runs the work when all earlier work has ended.
   * @throws KeysError STORE_LOCKED after waiting for `waitMs` milliseconds; errors of `work`
   */
  run<Result>(waitMs: number, work: () => Promise<Result>): Promise<Result> {
    let isExpired = false;
    const turn = this.#last.then(() => !isExpired);
    const result = new Promise<Result>((resolve, reject) => {
      const timer = setTimeout(() => {
        isExpired = true;
        reject(new KeysError('STORE_LOCKED', 'The key store is busy with other changes. Try again in a moment.'));
      }, waitMs);
      this.#last = turn
        .then((isDue) => {
          clearTimeout(timer);
          return isDue ? work().then(resolve, reject) : undefined;
        })
        .catch(reject);
    });
    return result;
  }
}
