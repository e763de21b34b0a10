import type { RequestBudget } from '../budget/request-budget.ts';
import { GROUP_SIZE } from '../budget/turns.ts';

/**
 * Interrupts the lists of one request when its turn is over: all of them, lest one that contains those that wait goes
 * on without end.
 */
export class ListTurns {
  readonly #budget: RequestBudget;
  #items = 0;
  #isOver = false;
  #last: Promise<void> = Promise.resolve();

  constructor(budget: RequestBudget) {
    this.#budget = budget;
  }

  /** Counts an item that comes next. Whether it has to wait. */
  mustWait(): boolean {
    this.#items += 1;
    if (this.#items % GROUP_SIZE === 0 && this.#budget.turns.isTimeUp) this.#isOver = true;
    return this.#isOver;
  }

  /** Goes on in the request's turn, after the lists that began to wait before. */
  wait<Result>(goOn: () => Result): Promise<Awaited<Result>> {
    this.#last = this.#last.then(() => (this.#isOver ? this.#next() : undefined));
    return this.#last.then(goOn) as Promise<Awaited<Result>>;
  }

  async #next(): Promise<void> {
    await this.#budget.nextTurn();
    this.#isOver = false;
  }
}
