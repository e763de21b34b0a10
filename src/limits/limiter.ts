import type { Restrictions } from '../keys/authorization/restrictions.ts';
import { debugTimed } from '../keys/steps.ts';
import { Allowance, type Standing } from './allowance.ts';
import type { LeaseGrant } from './lease.ts';
import type { LimitStore } from './limit-store.ts';

/** What a limiter needs from outside. */
export interface LimiterOptions {
  store: LimitStore;
  /** Milliseconds since any moment, which nobody can set: `performance.now`. */
  elapsed: () => number;
  /** Runs work after a delay in milliseconds. */
  schedule: (work: () => void, delayMs: number) => void;
  /** A random id of this process. */
  id: string;
}

/** Something by which requests are held to the limits of their keys. */
export interface Limited {
  readonly limiter: Limiter;
}

/** Whether a request is within its limits, and how it stands to each of them. */
export interface Decision {
  readonly isWithin: boolean;
  readonly standings: readonly Standing[];
}

/** The decision on a request; `gone` if the key, or one above it, was deleted meanwhile. */
export type Answer = Decision | 'gone';

interface Waiting {
  resolve: (answer: Answer) => void;
  reject: (error: unknown) => void;
}

/** An allowance, and the requests that wait for what the store grants it. */
interface Entry {
  readonly id: string;
  readonly allowance: Allowance;
  waiting: Waiting[];
  /** Whether the store is being asked, or is about to be. */
  isAsking: boolean;
}

/** How many allowances ask in one transaction. */
const MAX_REQUESTS = 100;
/** How often allowances are forgotten that nobody uses. */
const SWEEP_MS = 60_000;

/** Holds requests to the limits of their keys, of which the processes of a store take leases. See docs/limits.md. */
export class Limiter {
  /** How often leases were asked for, and how many requests were over a limit, since the program started. */
  readonly counts = { leases: 0, refused: 0 };
  readonly #options: LimiterOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #asking = new Set<Entry>();
  #flushing: Promise<void> | undefined;
  #holders = 0;

  constructor(options: LimiterOptions) {
    this.#options = options;
  }

  /**
   * Counts a request against its limits, or refuses it: at once where a lease, or that nothing is left, is known here.
   * @throws KeysError STORE_…, as a rejection
   */
  enter({ limitsId, limits }: Restrictions): Answer | Promise<Answer> {
    const entry = this.#entries.get(limitsId) ?? this.#add(limitsId, new Allowance(this.#holder(), limits));
    return (entry.isAsking ? undefined : this.#decide(entry)) ?? this.#wait(entry);
  }

  /** How many allowances are kept: of keys with limits that are in use. */
  get size(): number {
    return this.#entries.size;
  }

  /** Gives back what is leased, if the store takes it: at the end of the program. */
  async finish(): Promise<void> {
    for (const entry of this.#entries.values()) if (entry.allowance.endsAt !== undefined) this.#ask(entry);
    await this.#flushing;
  }

  #now(): number {
    return Math.floor(this.#options.elapsed() * 1000);
  }

  #holder(): string {
    this.#holders += 1;
    return `${this.#options.id}-${this.#holders}`;
  }

  #add(id: string, allowance: Allowance): Entry {
    if (this.#entries.size === 0) this.#options.schedule(() => this.#sweep(), SWEEP_MS);
    const entry: Entry = { id, allowance, waiting: [], isAsking: false };
    this.#entries.set(id, entry);
    return entry;
  }

  #decide({ allowance }: Entry): Decision | undefined {
    const now = this.#now();
    const isWithin = allowance.take(now);
    if (isWithin === false) this.counts.refused += 1;
    return isWithin === undefined ? undefined : { isWithin, standings: allowance.standings(now) };
  }

  #wait(entry: Entry): Promise<Answer> {
    return new Promise((resolve, reject) => {
      entry.waiting.push({ resolve, reject });
      this.#ask(entry);
    });
  }

  #ask(entry: Entry): void {
    if (entry.isAsking) return;
    entry.isAsking = true;
    this.#asking.add(entry);
    this.#flushing ??= this.#flush();
  }

  /** Asks the store for all that ask, and after that for those that have begun to ask meanwhile. */
  async #flush(): Promise<void> {
    while (this.#asking.size > 0) {
      const entries = [...this.#asking].slice(0, MAX_REQUESTS);
      for (const entry of entries) this.#asking.delete(entry);
      await this.#askStore(entries);
    }
    // At once: whoever asks from now on has to start anew.
    this.#flushing = undefined;
  }

  async #askStore(entries: readonly Entry[]): Promise<void> {
    this.counts.leases += entries.length;
    const asked = entries.map((entry) => {
      const waiting = entry.waiting;
      entry.waiting = [];
      return { entry, waiting, request: entry.allowance.ask(waiting.length, this.#now()) };
    });
    try {
      const requests = asked.map(({ request }) => request);
      const grants = await debugTimed(
        'limits were leased',
        () => this.#options.store.lease(requests),
        () => ({ leases: requests.length, waiting: asked.reduce((sum, { waiting }) => sum + waiting.length, 0) }),
      );
      for (const [index, { entry, waiting }] of asked.entries()) this.#receive(entry, waiting, grants[index]);
    } catch (error) {
      for (const { waiting } of asked) for (const { reject } of waiting) reject(error);
    }
    for (const entry of entries) this.#goOn(entry);
  }

  #receive(entry: Entry, waiting: readonly Waiting[], grant: LeaseGrant | undefined): void {
    if (!grant) {
      this.#entries.delete(entry.id);
      for (const { resolve } of waiting) resolve('gone');
      return;
    }
    const { allowance } = entry;
    const now = this.#now();
    allowance.receive(grant, waiting.length, now);
    const standings = allowance.standings(now);
    this.counts.refused += Math.max(0, waiting.length - grant.granted);
    for (const [index, { resolve }] of waiting.entries()) resolve({ isWithin: index < grant.granted, standings });
    const { endsAt } = allowance;
    if (endsAt !== undefined) this.#options.schedule(() => this.#endLease(entry, endsAt), (endsAt - now) / 1000 + 1);
  }

  /** Decides on the requests that have come while the store was asked. */
  #goOn(entry: Entry): void {
    const waiting = entry.waiting;
    entry.isAsking = false;
    entry.waiting = [];
    for (const { resolve, reject } of waiting) {
      const decision = entry.isAsking ? undefined : this.#decide(entry);
      if (decision) resolve(decision);
      else this.#wait(entry).then(resolve, reject);
    }
  }

  /** Tells the store what was used of a lease that has ended, unless it knows. */
  #endLease(entry: Entry, endsAt: number): void {
    if (entry.allowance.endsAt === endsAt) this.#ask(entry);
  }

  #sweep(): void {
    const now = this.#now();
    for (const { id, allowance, isAsking } of this.#entries.values())
      if (!isAsking && allowance.isIdle(now)) this.#entries.delete(id);
    if (this.#entries.size > 0) this.#options.schedule(() => this.#sweep(), SWEEP_MS);
  }
}
