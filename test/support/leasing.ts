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

/** A limit of which nothing was used. */
export function unusedState(limit: Limit): LimitState {
  return { count: splitLimit(limit).count, unusedAt: 0, leases: [] };
}

/** When the clock of the store began, in microseconds since 1970. */
export const EPOCH = Date.UTC(2030, 0, 1) * 1000;

/** The states of limits, as a store keeps them, and every request that was accepted, at the time when that was decided. */
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

  /** Answers a request without anybody who gets that. */
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

  /** The requests that one process would not have accepted that knew of all of them, by the limit. */
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

/** A process that accepts requests by leases. Its clock began at some other time, and its questions take a while. */
export class LeasingProcess {
  readonly #shared: SharedLimits;
  readonly #limits: readonly AppliedLimit[];
  readonly #clockBegan: number;
  #allowance: Allowance;
  #question: { request: LeaseRequest; waiting: number; grant?: LeaseGrant } | undefined;
  readonly #answered: LeaseRequest[] = [];
  /** How often the store was asked. */
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

  /** A request arrives; undefined if it has to wait for the store, or is one of several that do. */
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

  /** The store answers the question. */
  answer(): void {
    if (!this.#question || this.#question.grant) return;
    this.asked += 1;
    this.#question.grant = this.#shared.grant(this.#question.request, this.#limits);
    this.#answered.push(this.#question.request);
  }

  /** One of the last questions arrives again. @param ago how many came after it */
  repeat(ago: number): void {
    const request = this.#answered.at(-1 - ago);
    if (request) this.#shared.answer(request, this.#limits);
  }

  /** The answer arrives. Returns how many of those that waited were accepted. */
  receive(): number {
    const { grant, waiting } = this.#question ?? {};
    if (!grant) return 0;
    this.#question = undefined;
    this.#allowance.receive(grant, waiting!, this.#clock());
    return grant.granted;
  }

  /** A request that is decided at once, whatever that takes. */
  decide(): boolean {
    const decision = this.enter();
    if (decision !== undefined) return decision;
    this.answer();
    return this.receive() > 0;
  }

  /** The process is killed, and another one starts in its place. */
  restart(holder: string): void {
    this.#question = undefined;
    this.#allowance = new Allowance(holder, this.#limits);
  }

  #clock(): number {
    return this.#clockBegan + this.#shared.now;
  }
}
