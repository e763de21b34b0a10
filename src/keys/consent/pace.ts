import type { Limit } from '../limit.ts';
import { KeysError } from '../errors.ts';
import type { Source } from '../networks.ts';

/** How long an application waits from one question for its key to the next, in seconds (RFC 8628, section 3.2). */
export const POLL_SECONDS = 5;
const STEP_MS = POLL_SECONDS * 1000;
/** Others answer a little later than they were asked. */
const TOLERANCE_MS = 500;
const MAX_POLLS = 10_000;

/** Counts what sources do, in the memory of this process. */
export interface SourceCounter {
  /** In how many microseconds there may be another one; undefined within the limit. */
  wait(source: string): number | undefined;
  /** Counts once more. @returns what `wait` does */
  add(source: string): number | undefined;
}

/** Makes a counter by a limit. */
export type CounterOf = (limit: Limit) => SourceCounter;

/**
 * How many requests one address makes, how many codes one address, or one key, tries, and how often one address tries
 * to end a key that it cannot end. There are 20 to the power of 8 codes: one tries a hundred before a request ends.
 */
const EACH: Limit = '10/m';
/** The same for all addresses of a network together. */
const NETWORK: Limit = '30/m';

/** Bounds what anybody may do without a key, in one process. */
export class Pace {
  readonly polls = new Polls();
  readonly #requests: Attempts;
  readonly #codes: Attempts;
  readonly #revocations: Attempts;

  constructor(counterOf: CounterOf) {
    this.#requests = new Attempts(counterOf);
    this.#codes = new Attempts(counterOf);
    this.#revocations = new Attempts(counterOf);
  }

  /** Counts a request for a key. @throws KeysError TOO_MANY_REQUESTS */
  countRequest(source: Source): void {
    refuse(this.#requests.add(source), 'Too many keys were asked for from here.');
  }

  /** Counts a try of a user code, right or wrong: guessing must not go on. @throws KeysError TOO_MANY_REQUESTS */
  countCode(source: Source): void {
    refuse(this.#codes.add(source), 'Too many codes were tried from here.');
  }

  /** Counts a key that was not ended: one that can be is never held up. @throws KeysError TOO_MANY_REQUESTS */
  countRevocation(source: Source): void {
    refuse(this.#revocations.add(source), 'Too many keys were sent from here that cannot be ended.');
  }
}

/** When applications asked last, by the digests of their codes, in the memory of this process. */
class Polls {
  readonly #polls = new Map<string, { at: number; intervalMs: number }>();

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

/** What is tried, by addresses and by their networks. */
class Attempts {
  readonly #sources: SourceCounter;
  readonly #networks: SourceCounter;

  constructor(counterOf: CounterOf) {
    this.#sources = counterOf(EACH);
    this.#networks = counterOf(NETWORK);
  }

  /** Counts once more: what one address has too many of is not at the cost of its network, nor the other way round. */
  add({ source, network }: Source): number | undefined {
    const wait = network === undefined ? undefined : this.#networks.wait(network);
    const refused = wait ?? this.#sources.add(source);
    if (refused === undefined && network !== undefined) this.#networks.add(network);
    return refused;
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
