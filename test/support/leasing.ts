import type { AppliedLimit } from '../../src/keys/authorization/restrictions.ts';
import { type Limit, splitLimit } from '../../src/keys/basics/index.ts';
import { Allowance } from '../../src/limits/limiter.ts';
import {
  available,
  grantLease,
  type LeaseGrant,
  type LeaseRequest,
  type LimitState,
  computeRate,
  spend,
} from '../../src/limits/lease.ts';

/** The state of an unused limit. */
export function unusedState(limit: Limit): LimitState {
  return { count: splitLimit(limit).count, unusedAt: 0, leases: [] };
}

/** The start of the store's clock, in microseconds since 1970. */
export const EPOCH = Date.UTC(2030, 0, 1) * 1000;

/** The stored states of limits, and all accepted requests with the time of the decision. */
export class SharedLimits {
  /** The true time, in microseconds. */
  now = 0;
  readonly states = new Map<string, LimitState>();
  readonly admitted: { at: number; limits: readonly AppliedLimit[] }[] = [];

  grant(request: LeaseRequest, limits: readonly AppliedLimit[]): LeaseGrant {
    const grant = this.answer(request, limits);
    for (let index = 0; index < grant.granted; index += 1) this.admit(limits);
    return grant;
  }

  /** Answers a request that no process receives an answer for. */
  answer(request: LeaseRequest, limits: readonly AppliedLimit[]): LeaseGrant {
    const names = limits.map(nameOf);
    const before = limits.map((limit) => this.states.get(nameOf(limit)) ?? unusedState(limit.limit));
    const { states, grant } = grantLease(before, request, EPOCH + this.now);
    for (const [index, state] of states.entries()) this.states.set(names[index]!, state);
    return grant;
  }

  admit(limits: readonly AppliedLimit[]): void {
    this.admitted.push({ at: this.now, limits });
  }

  /** The accepted requests that exceed a limit, as one process that knew all requests would count them. */
  excess(): string[] {
    const unusedAt = new Map<string, number>();
    const excess: string[] = [];
    for (const { at, limits } of this.admitted)
      for (const limit of limits) {
        const [name, rate] = [nameOf(limit), computeRate(limit.limit)];
        const { weight = 1 } = limit;
        if (available(unusedAt.get(name) ?? 0, at, rate) < weight) excess.push(`${name} at ${at}`);
        unusedAt.set(name, spend(unusedAt.get(name) ?? 0, at, weight, rate));
      }
    return excess;
  }
}

function nameOf({ keyId, limit }: AppliedLimit): string {
  return `${keyId} ${limit}`;
}

/**
 * A process that accepts requests by leases. Its clock started at another time, and its requests to the store are slow.
 */
export class LeasingProcess {
  readonly #shared: SharedLimits;
  readonly #limits: readonly AppliedLimit[];
  readonly #clockBegan: number;
  #allowance: Allowance;
  #question: { request: LeaseRequest; waiting: number; grant?: LeaseGrant } | undefined;
  readonly #answered: LeaseRequest[] = [];
  /** How many requests were sent to the store. */
  asked = 0;

  constructor(shared: SharedLimits, limits: readonly AppliedLimit[], holder: string, clockBegan = 0) {
    this.#shared = shared;
    this.#limits = limits;
    this.#clockBegan = clockBegan;
    this.#allowance = new Allowance(holder, limits);
  }

  get isAsking(): boolean {
    return this.#question !== undefined;
  }

  /** A request arrives; undefined if it waits for the store. */
  enter(waiting = 1): boolean | undefined {
    if (this.#question) return undefined;
    const taken = this.#allowance.take(this.#clock());
    if (taken) this.#shared.admit(this.#limits);
    if (taken === undefined) this.ask(waiting);
    return taken;
  }

  ask(waiting: number): void {
    this.#question = { request: this.#allowance.ask(waiting, this.#clock()), waiting };
  }

  /** The store answers the pending request. */
  answer(): void {
    if (!this.#question || this.#question.grant) return;
    this.asked += 1;
    this.#question.grant = this.#shared.grant(this.#question.request, this.#limits);
    this.#answered.push(this.#question.request);
  }

  /** A recent request to the store arrives again. @param ago how many came after it */
  repeat(ago: number): void {
    const request = this.#answered.at(-1 - ago);
    if (request) this.#shared.answer(request, this.#limits);
  }

  /** The store's answer arrives. @returns how many of the waiting requests were accepted */
  receive(): number {
    const { grant, waiting } = this.#question ?? {};
    if (!grant) return 0;
    this.#question = undefined;
    this.#allowance.receive(grant, waiting!, this.#clock());
    return grant.granted;
  }

  /** Decides a request at once, including the round trip to the store. */
  decide(): boolean {
    const decision = this.enter();
    if (decision !== undefined) return decision;
    this.answer();
    return this.receive() > 0;
  }

  /** The process is killed, and another one replaces it. */
  restart(holder: string): void {
    this.#question = undefined;
    this.#allowance = new Allowance(holder, this.#limits);
  }

  #clock(): number {
    return this.#clockBegan + this.#shared.now;
  }
}
