import type { Limit } from '../limit.ts';
import { KeysError } from '../errors.ts';
import type { Source } from '../networks.ts';

/** How long an application waits from one question for its key to the next, in seconds (RFC 8628, section 3.2). */
export const POLL_SECONDS = 5;
const STEP_MS = POLL_SECONDS * 1000;
/** Others answer a little later than they were asked. */
const TOLERANCE_MS = 500;
const MAX_POLLS = 10_000;

/** Counts what sources do, and their networks together, in the memory of this process. */
export interface SourceCounter {
  /** Counts once more. @returns in how many microseconds that may be; undefined within the limit */
  add(source: Source): number | undefined;
}

/** Makes a counter by the limit of one address. */
export type CounterOf = (limit: Limit) => SourceCounter;

/**
 * How many requests one address makes, how many codes one address, or one key, tries, how many pages it answers, and
 * how often it fails to get a key or to end one. There are 20 to the power of 8 codes: one tries a hundred before a
 * request ends.
 */
const EACH: Limit = '10/m';

/** Bounds what anybody may do without a key, in one process. */
export class Pace {
  readonly polls = new Polls();
  readonly #requests: SourceCounter;
  readonly #codes: SourceCounter;
  readonly #decisions: SourceCounter;
  readonly #failures: SourceCounter;

  constructor(counterOf: CounterOf) {
    this.#requests = counterOf(EACH);
    this.#codes = counterOf(EACH);
    this.#decisions = counterOf(EACH);
    this.#failures = counterOf(EACH);
  }

  /** Counts a request for a key. @throws KeysError TOO_MANY_REQUESTS */
  countRequest(source: Source): void {
    refuse(this.#requests.add(source), 'Too many keys were asked for from here.');
  }

  /** Counts a try of a user code, right or wrong: guessing must not go on. @throws KeysError TOO_MANY_REQUESTS */
  countCode(source: Source): void {
    refuse(this.#codes.add(source), 'Too many codes were tried from here.');
  }

  /** Counts an answer to the page of a request, whatever it says. @throws KeysError TOO_MANY_REQUESTS */
  countDecision(source: Source): void {
    refuse(this.#decisions.add(source), 'Too many decisions were sent from here.');
  }

  /** Counts a failure to get a key or to end one, once that is known. @throws KeysError TOO_MANY_REQUESTS */
  countFailure(source: Source): void {
    refuse(this.#failures.add(source), 'Too many requests from here have failed.');
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

/** When applications asked last, by the digests of their codes, in the memory of this process. */
class Polls {
  readonly #polls = new Map<string, { at: number; intervalMs: number }>();

  has(digest: string): boolean {
    return this.#polls.has(digest);
  }

  /** Counts a question. @returns whether it came too early: from then on the application waits longer */
  isTooEarly(digest: string, now: number): boolean {
    const last = this.#polls.get(digest);
    const isEarly = last !== undefined && now - last.at < last.intervalMs - TOLERANCE_MS;
    const intervalMs = (last?.intervalMs ?? STEP_MS) + (isEarly ? STEP_MS : 0);
    // The oldest goes first.
    this.#polls.delete(digest);
    this.#polls.set(digest, { at: now, intervalMs });
    if (this.#polls.size > MAX_POLLS) this.#polls.delete(this.#polls.keys().next().value!);
    return isEarly;
  }

  forget(digest: string): void {
    this.#polls.delete(digest);
  }
}
