import { answerTooLarge, timeExceeded } from './errors.ts';
import { Turns } from './turns.ts';

/** What one request may take. */
export interface BudgetLimits {
  /** Its cost, see `costOf`. */
  cost: number;
  /** The fields and list items that it resolves. */
  nodes: number;
  /** The characters of its answer. */
  characters: number;
  /** How long it runs, in milliseconds. */
  timeMs: number;
}

/** The limits of every request. */
export const BUDGET: BudgetLimits = { cost: 30_000, nodes: 60_000, characters: 4_000_000, timeMs: 10_000 };

/** Gives each request of a server its budget. */
export class Budgets {
  readonly limits: BudgetLimits;
  readonly #turns = new Turns();

  constructor(limits: Partial<BudgetLimits> = {}) {
    this.limits = { ...BUDGET, ...limits };
  }

  /** The budget of a request that starts now. */
  start(): RequestBudget {
    this.#turns.begin();
    return new RequestBudget(this.limits, this.#turns);
  }
}

/** What a request has taken of its budget. */
export class RequestBudget {
  readonly limits: BudgetLimits;
  readonly turns: Turns;
  #nodes = 0;
  #reason: Error | undefined;
  #controller: AbortController | undefined;
  #queue: Promise<unknown> | undefined;
  /** Rejects the result that is waited for. */
  #reject: ((reason: Error) => void) | undefined;

  constructor(limits: BudgetLimits, turns: Turns) {
    this.limits = limits;
    this.turns = turns;
  }

  /** Aborted when the request is abandoned. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#reason && !this.#controller.signal.aborted) this.#controller.abort(this.#reason);
    return this.#controller.signal;
  }

  /** Stops the request: no resolver is started any more. */
  abandon(reason: Error): void {
    this.#reason ??= reason;
    this.#controller?.abort(this.#reason);
    this.#reject?.(this.#reason);
  }

  /** Whether the request was abandoned. */
  get isAbandoned(): boolean {
    return this.#reason !== undefined;
  }

  /** Throws once the request was abandoned. */
  check(): void {
    if (this.#reason) throw this.#reason;
  }

  /** Does work, if necessary after other requests had their turn. */
  inTurn<Result>(work: () => Result): Result | Promise<Awaited<Result>> {
    return this.turns.isOver ? (this.nextTurn().then(work) as Promise<Awaited<Result>>) : work();
  }

  /** Does work after the work before it is done, and when it is the request's turn. */
  inSequence<Result>(work: () => Result): Promise<Awaited<Result>> {
    const result = (this.#queue ?? Promise.resolve()).then(() => this.inTurn(work)) as Promise<Awaited<Result>>;
    this.#queue = result.catch(() => {});
    return result;
  }

  /** Resolves when it is the request's turn; rejects once it was abandoned. */
  async nextTurn(): Promise<void> {
    await this.turns.next();
    this.check();
  }

  /** Counts fields and list items. @throws GraphQLError COST_EXCEEDED */
  addNodes(count: number): void {
    this.#nodes += count;
    if (this.#nodes > this.limits.nodes) throw answerTooLarge('fields and items', this.limits.nodes);
  }

  /** The result of the request; rejects as soon as the request is abandoned, at the latest when its time is up. */
  async within<Result>(work: Promise<Result>): Promise<Result> {
    const timer = setTimeout(() => this.abandon(timeExceeded(this.limits.timeMs)), this.limits.timeMs);
    try {
      return await new Promise<Result>((resolve, reject) => {
        this.#reject = reject;
        if (this.#reason) reject(this.#reason);
        work.then(resolve, reject);
      });
    } finally {
      clearTimeout(timer);
    }
  }
}
