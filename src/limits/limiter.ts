import type { AppliedLimit, Restrictions } from '../keys/authorization/index.ts';
import {
  debugTimed,
  type Limit,
  type LimitParts,
  parseRates,
  type Source,
  splitLimit,
  WIDE_DIGITS,
} from '../keys/basics/index.ts';
import {
  available,
  availableAt,
  type LeasedLimit,
  type LeaseGrant,
  type LeaseRequest,
  type LimitStore,
  MAX_LIFE_US,
  type Rate,
  computeRate,
  spend,
} from './lease.ts';

/** How a request stands to one of its limits. */
export interface Standing extends LimitParts {
  readonly limit: Limit;
  /** How much of it a request counts as. */
  readonly weight: number;
  /** How much may follow at once, as far as this process knows. */
  readonly remaining: number;
  /** In how many microseconds there will be one more, Infinity for never; 0 where all of the limit is left. */
  readonly moreIn: number;
  /** In how many microseconds there may be another such request, Infinity for never; 0 for now. */
  readonly waitUs: number;
}

/** A limit, and what this process knows of its use. Times are those of the store's clock. */
interface KnownLimit extends LimitParts, AppliedLimit {
  readonly weight: number;
  readonly rate: Rate;
  granted: LeaseGrant['limits'][number];
  /** See `LeasedLimit`. */
  unusedAt: number;
}

/** The limits of keys, by id. */
type KeyLimits = ReadonlyMap<string, readonly Limit[]>;
const UNUSED: LeaseGrant['limits'][number] = { unusedAt: 0, leased: 0 };

/** A lease can be used for this part of the shortest time of its limits. */
const LIFE_PART = 1 / 10;
/** How long a process does not ask again after it was told that nothing is left, in microseconds. */
const REST_US = 100_000;
/** More than any limit leases. */
const MAX_AHEAD = 1_000_000_000;
const NEVER = Number.NEGATIVE_INFINITY;

/**
 * What a process may accept of the requests that count against the same limits: its lease, without asking the store.
 * Times are microseconds of a clock that only goes forwards.
 */
export class Allowance {
  readonly #holder: string;
  readonly #limits: readonly KnownLimit[];
  readonly #lifeUs: number;
  readonly #restUs: number;
  /** How much the store's clock is ahead of this one, at most. */
  #offset = 0;
  #turn = 0;
  #left = 0;
  #used = 0;
  #endsAt = NEVER;
  #askedAt = NEVER;
  #ahead = 0;
  /** Until then the store would grant nothing. */
  #emptyUntil = NEVER;

  /** @param holder identifies the leases of this allowance among those of all processes */
  constructor(holder: string, limits: readonly AppliedLimit[]) {
    this.#holder = holder;
    this.#limits = limits.map((applied) => ({
      weight: 1,
      ...applied,
      ...splitLimit(applied.limit),
      rate: computeRate(applied.limit),
      granted: { unusedAt: 0, leased: 0 },
      unusedAt: 0,
    }));
    const fulls = this.#limits.map(({ rate }) => (rate.refills ? rate.burst * rate.intervalUs : Infinity));
    this.#lifeUs = Math.min(Math.min(...fulls) * LIFE_PART, MAX_LIFE_US);
    // Where requests become available more slowly, each time when one does is waited for.
    this.#restUs = this.#limits.some(({ rate }) => rate.intervalUs < REST_US) ? REST_US : 0;
  }

  /** When the lease ends of which the store has not been told what was used; undefined if there is none. */
  get endsAt(): number | undefined {
    return this.#endsAt === NEVER ? undefined : this.#endsAt;
  }

  /** Whether nothing is known that would be missed. */
  isIdle(now: number): boolean {
    return this.#endsAt === NEVER && now >= this.#emptyUntil;
  }

  /** Lets a request in, or refuses it; undefined where only the store can tell. */
  take(now: number): boolean | undefined {
    if (this.#left === 0 || now >= this.#endsAt) return now < this.#emptyUntil ? false : undefined;
    this.#left -= 1;
    this.#used += 1;
    for (const known of this.#limits)
      known.unusedAt = spend(known.unusedAt, now + this.#offset, known.weight, known.rate);
    return true;
  }

  /** Whether `take` would refuse. */
  isUsedUp(now: number): boolean {
    return (this.#left === 0 || now >= this.#endsAt) && now < this.#emptyUntil;
  }

  /** What to ask the store for. It ends the lease: nothing may be taken until the answer is there. */
  ask(waiting: number, now: number): LeaseRequest {
    // Twice as much if the last lease was used up early, otherwise as much as was used of it.
    const isEarly = now - this.#askedAt < this.#lifeUs;
    this.#ahead = isEarly ? Math.min(Math.max(2 * this.#ahead, 1), MAX_AHEAD) : this.#used;
    this.#askedAt = now;
    this.#left = 0;
    this.#turn += 1;
    return {
      holder: this.#holder,
      turn: this.#turn,
      used: this.#used,
      limits: this.#limits.map(({ keyId, limit, route, weight, unusedAt }) => {
        return { keyId, limit, ...(route !== undefined && { route }), weight, unusedAt };
      }),
      waiting,
      ahead: waiting > 0 ? this.#ahead : 0,
      lifeUs: this.#lifeUs,
    };
  }

  /** Takes the store's answer, of which the lease is used from now on. */
  receive({ now: storeTime, granted, ahead, limits }: LeaseGrant, waiting: number, now: number): void {
    // The store has told its time at some moment since it was asked: it is this much later now, at most.
    this.#offset = storeTime - this.#askedAt;
    this.#left = ahead;
    this.#used = 0;
    this.#endsAt = ahead > 0 ? this.#askedAt + this.#lifeUs : NEVER;
    let next = NEVER;
    for (const [index, known] of this.#limits.entries()) {
      known.granted = limits[index]!;
      known.unusedAt = 0;
      next = Math.max(next, availableAt(known.granted.unusedAt, (ahead + 1) * known.weight, known.rate));
    }
    // What is spent for good is asked for again all the same: whoever may change keys may change that.
    if (next === Infinity) next = storeTime + MAX_LIFE_US;
    // Where only what others have leased is left, that may be given back any time.
    if (next <= storeTime) this.#emptyUntil = granted < waiting ? this.#askedAt + REST_US : NEVER;
    else this.#emptyUntil = Math.max(next - storeTime + now, this.#askedAt + this.#restUs);
  }

  /** How a request that was accepted or refused now stands to each of its limits. */
  standings(now: number): Standing[] {
    const storeTime = now + this.#offset;
    return this.#limits.map(({ limit, count, unit, weight, rate, granted, unusedAt }) => {
      // Of a budget, what others have leased is not spent.
      const leased = (rate.refills ? granted.leased : 0) + this.#used * weight;
      const all = Math.max(granted.unusedAt + leased * rate.intervalUs, unusedAt);
      const remaining = available(all, storeTime, rate);
      const moreIn = remaining < rate.burst ? availableAt(all, remaining + 1, rate) - storeTime : 0;
      const waitUs = remaining < weight ? availableAt(all, weight, rate) - storeTime : 0;
      return { limit, count, unit, weight, remaining, moreIn, waitUs };
    });
  }
}

/** What a limiter needs from outside. */
interface LimiterOptions {
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

/** The decision on a request; `gone` if the key, or a parent key, was deleted meanwhile. */
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

  /** Whether a request would be refused, as far as is known here: before it is known what it counts as. */
  isUsedUp({ limitsId }: Restrictions): boolean {
    return this.#entries.get(limitsId)?.allowance.isUsedUp(this.#now()) ?? false;
  }

  /**
   * Leases for an edge, which holds requests to the same limits: see `LimitStore`. The limits of keys are those that they
   * have here, whatever the edge takes them to be, and its holders are its own. It says itself what limits routes have.
   * @param edge the id of its key
   * @param limitsOf the limits of keys that are there
   * @throws KeysError STORE_…
   */
  async leaseFor(
    requests: readonly LeaseRequest[],
    { edge, limitsOf }: { edge: string; limitsOf: (ids: readonly string[]) => Promise<KeyLimits> },
  ): Promise<(LeaseGrant | undefined)[]> {
    const known = await limitsOf([...new Set(requests.flatMap(({ limits }) => limits.map(({ keyId }) => keyId)))]);
    const grants: (LeaseGrant | undefined)[] = requests.map(() => undefined);
    const asked: { index: number; request: LeaseRequest; held: boolean[] }[] = [];
    for (const [index, request] of requests.entries()) {
      if (!request.limits.every(({ keyId }) => known.has(keyId))) continue;
      const all = request.limits.map((limit) => (limit.route === undefined ? ownLimit(limit, known) : limit));
      const [limits, held] = [all.flatMap((limit) => limit ?? []), all.map((limit) => limit !== undefined)];
      if (limits.length > 0)
        asked.push({ index, request: { ...request, holder: `${edge} ${request.holder}`, limits }, held });
      // They were taken off, which the edge does not know yet.
      else
        grants[index] = { now: Date.now() * 1000, granted: request.waiting, ahead: 0, limits: held.map(() => UNUSED) };
    }
    const given = asked.length === 0 ? [] : await this.#options.store.lease(asked.map(({ request }) => request));
    for (const [position, { index, held }] of asked.entries()) {
      const grant = given[position];
      const limits = grant && [...grant.limits];
      grants[index] = grant && { ...grant, limits: held.map((isHeld) => (isHeld ? limits!.shift()! : UNUSED)) };
    }
    return grants;
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

/** The limit of a key in the same unit; undefined if it has none. */
function ownLimit(asked: LeasedLimit, known: KeyLimits): LeasedLimit | undefined {
  const { unit } = splitLimit(asked.limit);
  const limit = known.get(asked.keyId)?.find((each) => splitLimit(each).unit === unit);
  return limit && { ...asked, limit };
}

/** How many names of each width are told apart, so that their number takes no more memory. */
const MAX_NAMES = 10_000;
/** How often names are forgotten whose limit is unused, in microseconds, where there are too many. */
const SWEEP_US = 1_000_000;
/** The name of all that have none of their own. */
const OTHERS = 'others';
/** How many times as much as an address its network may have, and all networks that one holder may have. */
const TIMES = { wide: 50, network: 3, source: 1 } as const;

/**
 * Counts attempts by where they come from, in the memory of this process: keys that are not valid, codes that are
 * tried, requests for keys. They are counted by wide networks first, then by networks and addresses: so whoever has
 * many addresses is refused by what they have in common, and takes no room from others.
 */
export class AttemptCounter {
  readonly limit: Limit;
  readonly #elapsed: () => number;
  readonly #wide: Width;
  readonly #network: Width;
  readonly #source: Width;

  /**
   * With a limit as it was written, or without one. With the same limit as an earlier one, that goes on.
   * @throws RangeError if it is none
   */
  static of(limit: string | false, earlier?: AttemptCounter): AttemptCounter | undefined {
    if (limit === false) return undefined;
    const { values, issues } = parseRates([limit]);
    if (!values[0]) throw new RangeError(issues[0]!.message);
    return earlier && earlier.limit === values[0] ? earlier : new AttemptCounter(values[0]);
  }

  /**
   * @param limit of one address
   * @param elapsed milliseconds since any moment, which nobody can set
   */
  constructor(limit: Limit, elapsed: () => number = () => performance.now()) {
    this.limit = limit;
    this.#elapsed = elapsed;
    this.#wide = new Width(limit, TIMES.wide);
    this.#network = new Width(limit, TIMES.network);
    this.#source = new Width(limit, TIMES.source);
  }

  /** How many names it remembers: at most 10,000 of each width, and one for the others. */
  get size(): number {
    return this.#wide.size + this.#network.size + this.#source.size;
  }

  /**
   * Counts an attempt. What one address has too many of is not at the cost of its network, nor the other way round.
   * @returns in how many microseconds there may be one; undefined within the limit
   */
  add({ source, network }: Source): number | undefined {
    const now = Math.floor(this.#elapsed() * 1000);
    const widths: [Width, string][] = [[this.#source, source]];
    if (network !== undefined) widths.unshift([this.#wide, network.slice(0, WIDE_DIGITS)], [this.#network, network]);
    // What is not told apart any more counts by what is wider, and only the widest together with all others.
    const counted = widths.flatMap(([width, name], index): [Width, string][] =>
      width.hasRoom(name, now) ? [[width, name]] : index === 0 ? [[width, OTHERS]] : [],
    );
    for (const [width, name] of counted) {
      const wait = width.wait(name, now);
      if (wait !== undefined) return wait;
    }
    for (const [width, name] of counted) width.spend(name, now);
    return undefined;
  }
}

/** What is counted of addresses, of networks, or of wide networks. */
class Width {
  readonly #rate: Rate;
  /** When a limit is unused again, by name. */
  readonly #names = new Map<string, number>();
  #sweptAt = 0;

  constructor(limit: Limit, times: number) {
    const { burst, intervalUs } = computeRate(limit);
    this.#rate = { burst: burst * times, intervalUs: Math.ceil(intervalUs / times), refills: true };
  }

  get size(): number {
    return this.#names.size;
  }

  hasRoom(name: string, now: number): boolean {
    const names = this.#names;
    if (names.size < MAX_NAMES || names.has(name)) return true;
    if (now - this.#sweptAt >= SWEEP_US) {
      this.#sweptAt = now;
      for (const [each, unusedAt] of names) if (unusedAt <= now) names.delete(each);
    }
    return names.size < MAX_NAMES;
  }

  wait(name: string, now: number): number | undefined {
    const unusedAt = this.#names.get(name) ?? 0;
    return available(unusedAt, now, this.#rate) === 0 ? availableAt(unusedAt, 1, this.#rate) - now : undefined;
  }

  spend(name: string, now: number): void {
    this.#names.set(name, spend(this.#names.get(name) ?? 0, now, 1, this.#rate));
  }
}
