import { KeysError, type Limit, type Source } from '../../keys/basics/index.ts';
import type { FeatureParts } from '../../keys/service/index.ts';
import { AttemptCounter } from '../../limits/index.ts';

/** Polling interval of an application, in seconds (RFC 8628, section 3.2). */
export const POLL_SECONDS = 5;
/** Others answer a little later than they were asked. */
const TOLERANCE_MS = 500;
const MAX_POLLS = 10_000;

/**
 * Limit for each address of requests, tried codes (also for each key), answered pages, and failures to get or revoke a
 * key. Of the 20^8 codes, one address can try a hundred before a request expires.
 */
const EACH: Limit = '10/m';

/** The things that are counted so, each by itself, and the message for doing one too often. */
const TOO_OFTEN = {
  /** Requests for keys. */
  request: 'Too many requests for keys from your address.',
  /** Tries of user codes, right or wrong: guessing must not go on. */
  code: 'Too many codes tried from your address.',
  /** Answers to the page of a request, whatever they say. */
  decision: 'Too many decisions sent from your address.',
  /** Failures to get or revoke a key. */
  failure: 'Too many failed requests from your address.',
};
export type Counted = keyof typeof TOO_OFTEN;

/** Limits the actions that need no key, for each process. */
export class Pace {
  readonly polls = new Polls();
  readonly #counters: Readonly<Record<Counted, AttemptCounter>>;

  constructor({ elapsed }: Pick<FeatureParts, 'elapsed'>) {
    const counter = () => new AttemptCounter(EACH, elapsed);
    this.#counters = { request: counter(), code: counter(), decision: counter(), failure: counter() };
  }

  /** Counts something that was done. @throws KeysError TOO_MANY_REQUESTS */
  count(what: Counted, source: Source): void {
    const wait = this.#counters[what].add(source);
    if (wait === undefined) return;
    const seconds = Math.max(Math.ceil(wait / 1_000_000), 1);
    const remedy = `Try again in ${seconds} ${seconds === 1 ? 'second' : 'seconds'}.`;
    throw new TooManyRequestsError(`${TOO_OFTEN[what]} ${remedy}`, seconds);
  }
}

/** A limit was exceeded. */
export class TooManyRequestsError extends KeysError {
  /** Seconds to wait. */
  readonly retryAfter: number;

  constructor(message: string, retryAfter: number) {
    super('TOO_MANY_REQUESTS', message);
    this.retryAfter = retryAfter;
  }
}

/** Times of the last answer to each application, by the digest of its code, in memory. */
class Polls {
  readonly #answered = new Map<string, number>();

  has(digest: string): boolean {
    return this.#answered.has(digest);
  }

  /**
   * Checks whether an application polls too early after the last answer. This is not counted: an application that
   * does not slow down is answered every other time, and still gets its key.
   */
  isTooEarly(digest: string, now: number): boolean {
    const last = this.#answered.get(digest);
    if (last !== undefined && now - last < POLL_SECONDS * 1000 - TOLERANCE_MS) return true;
    // The oldest goes first.
    this.#answered.delete(digest);
    this.#answered.set(digest, now);
    if (this.#answered.size > MAX_POLLS) this.#answered.delete(this.#answered.keys().next().value!);
    return false;
  }

  forget(digest: string): void {
    this.#answered.delete(digest);
  }
}
