import type { Limit } from '../limit.ts';
import { KeysError } from '../errors.ts';
import { Polls } from './polls.ts';

/** Counts what one source does, in the memory of this process. */
export interface SourceCounter {
  /** Counts once more. @returns undefined within the limit; otherwise in how many microseconds there may be another */
  add(source: string): number | undefined;
}

/** How many requests one address makes. */
const REQUESTS: Limit = '10/m';
/** How many codes one address, or one key, tries: of 20 to the power of 8, a hundred before a request ends. */
const CODES: Limit = '10/m';

/** How often one address tries to end a key that it cannot end. */
const REVOCATIONS: Limit = '10/m';

/** Bounds what anybody may do without a key, in one process. */
export class Pace {
  readonly polls = new Polls();
  readonly #requests: SourceCounter;
  readonly #codes: SourceCounter;
  readonly #revocations: SourceCounter;

  constructor(counterOf: (limit: Limit) => SourceCounter) {
    this.#requests = counterOf(REQUESTS);
    this.#codes = counterOf(CODES);
    this.#revocations = counterOf(REVOCATIONS);
  }

  /** Counts a request for a key. @throws KeysError TOO_MANY_REQUESTS */
  countRequest(source: string): void {
    refuse(this.#requests.add(source), 'Too many keys were asked for from here.');
  }

  /** Counts a try of a user code, right or wrong: guessing must not go on. @throws KeysError TOO_MANY_REQUESTS */
  countCode(source: string): void {
    refuse(this.#codes.add(source), 'Too many codes were tried from here.');
  }

  /** Counts a key that was not ended: one that can be is never held up. @throws KeysError TOO_MANY_REQUESTS */
  countRevocation(source: string): void {
    refuse(this.#revocations.add(source), 'Too many keys were sent from here that cannot be ended.');
  }
}

function refuse(wait: number | undefined, what: string): void {
  if (wait === undefined) return;
  const seconds = Math.max(Math.ceil(wait / 1_000_000), 1);
  throw new TooManyRequestsError(`${what} Try again in ${seconds} ${seconds === 1 ? 'second' : 'seconds'}.`, seconds);
}

/** Something was done too often. */
export class TooManyRequestsError extends KeysError {
  /** After how many seconds it may be done again. */
  readonly retryAfter: number;

  constructor(message: string, retryAfter: number) {
    super('TOO_MANY_REQUESTS', message);
    this.retryAfter = retryAfter;
  }
}
