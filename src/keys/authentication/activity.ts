import { setTimeout as sleep } from 'node:timers/promises';
import { type AuditDraft, type Refusal, RefusalSampler } from '../audit/index.ts';
import { type AccessObserver, findChain, principalOf } from '../authorization/index.ts';
import { activateRotation, type Parts, Transaction } from '../changes/index.ts';
import {
  type ApiKey,
  firstKept,
  type HourUsage,
  type KeyUsage,
  MAX_TOOLS,
  ROUTE,
  TOOL,
  NO_REQUESTS,
  type Outcome,
  OUTCOMES,
  PERIOD_MS,
  startOf,
  USAGE,
  type UsedGrant,
} from '../key/index.ts';
import type { Catalog, Permission, Role } from '../permissions/index.ts';
import type { KeyWriter } from '../repository/index.ts';
import { sortYielding, UNIT_MS } from '../basics/index.ts';

/** What is told of which permissions keys use and lack. */
type AccessRecord = Pick<Activity, 'usedPermission' | 'refused'>;

/**
 * Tells which permissions a key uses and lacks. There is one for each key that is remembered: an object with closures
 * would take four times as much memory.
 */
class KeyObserver implements AccessObserver {
  readonly #record: AccessRecord;
  readonly #key: ApiKey;

  constructor(record: AccessRecord, key: ApiKey) {
    this.#record = record;
    this.#key = key;
  }

  used(permission: Permission): void {
    this.#record.usedPermission(this.#key.id, permission);
  }

  granted(role: Role): void {
    this.#record.usedPermission(this.#key.id, `role:${role}`);
  }

  called(tool: string): void {
    this.#record.usedPermission(this.#key.id, `${TOOL}${tool}`);
  }

  passed(route: string): void {
    this.#record.usedPermission(this.#key.id, `${ROUTE}${route}`);
  }

  lacked(permissions: readonly Permission[], address?: string, tool?: string): void {
    const { id, name } = this.#key;
    this.#record.refused({
      reason: 'forbidden',
      actor: { kind: 'KEY', id, name },
      apiKey: null,
      missing: permissions.slice(0, 5),
      address,
      tool,
    });
  }
}

/** How many keys are written at once: neither their transaction nor making its parameters keeps others waiting. */
export const PIECE_KEYS = 250;
/** How many times as long as a piece took others have their turns behind it. */
const PAUSE_FACTOR = 2;

/** Lets others have their turns after a piece of work that began at a time of `performance.now`. */
export function pauseAfter(began: number): Promise<void> {
  return sleep((performance.now() - began) * PAUSE_FACTOR, undefined, { ref: false });
}
/** How many hours of a key are told apart while they cannot be written: what comes then counts for the last of them. */
const MAX_HOURS = 24;
/** How many grants of a key are collected before no more tools and routes are: names of tools are from its requests. */
const MAX_GRANTS = 2 * MAX_TOOLS;

type CollectedHour = { -readonly [Field in keyof HourUsage]: HourUsage[Field] };

/** One for each key: it is made with the first request, and changed by the others. */
interface CollectedKeyUsage extends Omit<KeyUsage, 'permissions'> {
  permissions: Set<UsedGrant>;
  hours: CollectedHour[];
}

/** How much keys were used, until that is taken to be written. */
class CollectedUsage {
  readonly #byId = new Map<string, CollectedKeyUsage>();
  /** That of the latest request, which most often has more to add. */
  #latest: CollectedKeyUsage | undefined;
  #uses = 0;

  /** Of how many keys there is something to write. */
  get size(): number {
    return this.#byId.size;
  }

  /** How many uses there are to write. */
  get uses(): number {
    return this.#uses;
  }

  /** @param now milliseconds since 1970 */
  addUse(id: string, secret: 'current' | 'previous', now: number): void {
    const usage = this.#usageOf(id);
    usage.uses += 1;
    this.#uses += 1;
    usage.lastUsedAt = now;
    if (secret === 'previous') usage.previousLastUsedAt = now;
    hourOf(usage, now).accepted += 1;
  }

  /** Counts a request that is no use of its key. @param now milliseconds since 1970 */
  addRequest(id: string, outcome: Outcome, now: number): void {
    hourOf(this.#usageOf(id), now)[outcome] += 1;
  }

  /** Counts a request otherwise that was counted as accepted before. @param usedAt when, in milliseconds since 1970 */
  changeOutcome(id: string, outcome: Outcome, usedAt: number): void {
    const usage = this.#usageOf(id);
    const hour = hourOf(usage, usedAt);
    hour.accepted -= 1;
    hour[outcome] += 1;
    if (outcome !== 'limited') return;
    usage.uses -= 1;
    this.#uses -= 1;
  }

  /** @param clock milliseconds since 1970; only read if the use itself was taken already */
  addGrant(id: string, grant: UsedGrant, clock: () => number): void {
    const usage = this.#usageOf(id);
    usage.lastUsedAt ??= clock();
    const isName = grant.startsWith(TOOL) || grant.startsWith(ROUTE);
    if (usage.permissions.size < MAX_GRANTS || !isName) usage.permissions.add(grant);
  }

  /** The ids of the keys, in pieces to be taken. They are sorted, as neighbours share the pages of an index. */
  async pieces(): Promise<string[][]> {
    const ids = await sortYielding([...this.#byId.keys()], (one, other) => (one < other ? -1 : 1));
    return Array.from({ length: Math.ceil(ids.length / PIECE_KEYS) }, (_, index) =>
      ids.slice(index * PIECE_KEYS, (index + 1) * PIECE_KEYS),
    );
  }

  /** Removes the usage of these keys, to be written. */
  take(ids: readonly string[]): KeyUsage[] {
    this.#latest = undefined;
    return ids.flatMap((id) => {
      const usage = this.#byId.get(id);
      this.#byId.delete(id);
      this.#uses -= usage?.uses ?? 0;
      return usage ? { ...usage, permissions: [...usage.permissions] } : [];
    });
  }

  /** Adds what was taken and could not be written. What was added since is later. */
  putBack(taken: readonly KeyUsage[]): void {
    for (const { id, uses, lastUsedAt, previousLastUsedAt, permissions, hours } of taken) {
      const usage = this.#usageOf(id);
      usage.uses += uses;
      this.#uses += uses;
      usage.lastUsedAt ??= lastUsedAt;
      usage.previousLastUsedAt ??= previousLastUsedAt;
      for (const permission of permissions) usage.permissions.add(permission);
      for (const { start, ...counts } of hours) {
        const hour = hourOf(usage, start);
        for (const outcome of OUTCOMES) hour[outcome] += counts[outcome];
      }
    }
  }

  #usageOf(id: string): CollectedKeyUsage {
    if (this.#latest?.id === id) return this.#latest;
    let usage = this.#byId.get(id);
    if (!usage) {
      usage = { id, uses: 0, lastUsedAt: null, previousLastUsedAt: null, permissions: new Set(), hours: [] };
      this.#byId.set(id, usage);
    }
    this.#latest = usage;
    return usage;
  }
}

/** The counts of the hour that a time is in. Most often, that is the last one. */
function hourOf({ hours }: CollectedKeyUsage, time: number): CollectedHour {
  const last = hours.at(-1);
  if (last && time >= last.start && time < last.start + PERIOD_MS.HOUR) return last;
  const start = startOf('HOUR', time);
  const known = hours.find((hour) => hour.start === start) ?? (hours.length < MAX_HOURS ? undefined : last);
  if (known) return known;
  const hour = { start, ...NO_REQUESTS };
  hours.push(hour);
  return hour;
}

/** What happened since it was last written, for one transaction. */
export interface ActivityEvents {
  /** Keys whose new secret was used for the first time, each with the public id of that secret. */
  activated: { id: string; publicId: string }[];
  /** Refused requests, as entries of the audit log. */
  refusals: AuditDraft[];
}

/**
 * Where activity is written. What has a name is written once, by whichever process of a store: `false` says that it was
 * before.
 */
export interface ActivityWriters {
  /** Adds to the totals of keys. When it throws, that is kept and written later. */
  writeUsage: (usage: readonly KeyUsage[], name?: string) => Promise<boolean | void>;
  /** Writes events, with the same promise. */
  writeEvents: (events: ActivityEvents, name?: string) => Promise<boolean | void>;
}

/** What `Activity` needs from outside. */
interface ActivityOptions extends ActivityWriters {
  /** Is called after usage was written, in the background. When it throws, nothing is lost. */
  afterUsage?: (() => Promise<void>) | undefined;
  /** Milliseconds since 1970. */
  clock: () => number;
  /** Calls `work` after `delay` milliseconds. */
  schedule: (work: () => void, delayMs: number) => void;
}

/** How long activity is collected before it is written. */
const FLUSH_MS = 2000;
/** How many times as long as writing usage took it is then collected at least, up to `MAX_REST_MS`. */
const REST_FACTOR = 30;
/** So late may usage be, and so much of it may a crash lose. */
const MAX_REST_MS = 30_000;

/**
 * Records what keys are used for. It collects in memory and writes asynchronously, in batches, so that no request waits
 * for it; a crash loses what was not written yet and nothing else. While many keys are in use, writing their usage
 * takes long, and is done seldomer: what comes in between is added up.
 */
export class Activity {
  readonly #options: ActivityOptions;
  readonly #refusals = new RefusalSampler();
  readonly #usage = new CollectedUsage();
  #activated = new Map<string, string>();
  #drafts: AuditDraft[] = [];
  #willFlushUsage = false;
  #willFlushEvents = false;
  /** When usage may be written again, in milliseconds since 1970. */
  #restsUntil = 0;
  #writing: Promise<void> | undefined;

  constructor(options: ActivityOptions) {
    this.#options = options;
  }

  /** How many uses of keys are not written yet. */
  get unwrittenUses(): number {
    return this.#usage.uses;
  }

  /**
   * Records that a key was accepted by one of its secrets.
   * @returns when that was, in milliseconds since 1970
   */
  used({ id, publicId, rotation }: ApiKey, secret: 'current' | 'previous'): number {
    const now = this.#options.clock();
    this.#usage.addUse(id, secret, now);
    if (secret === 'current' && rotation?.previousEndsAt === null && !this.#activated.has(id)) {
      this.#activated.set(id, publicId);
      // One flush takes all that wait.
      if (this.#activated.size === 1) this.#options.schedule(() => void this.#flushEvents(), 0);
    }
    this.#scheduleUsage();
    return now;
  }

  /**
   * Records that a request of a key ended otherwise than accepted.
   * @param usedAt when it was recorded as a use of the key, in milliseconds since 1970; undefined if it was not
   */
  ended(id: string, outcome: Exclude<Outcome, 'accepted'>, usedAt?: number): void {
    if (usedAt === undefined) this.#usage.addRequest(id, outcome, this.#options.clock());
    else this.#usage.changeOutcome(id, outcome, usedAt);
    this.#scheduleUsage();
  }

  /** Records a refused request, or several of its kind. */
  refused(refusal: Refusal, times?: number): void {
    this.#refusals.add(refusal, this.#options.clock(), times);
    this.#scheduleEvents();
  }

  /** Records which permissions a key uses and lacks. */
  createObserver(key: ApiKey): AccessObserver {
    return new KeyObserver(this, key);
  }

  /** Records that a key has used a permission, or has granted a role. */
  usedPermission(id: string, grant: UsedGrant): void {
    this.#usage.addGrant(id, grant, this.#options.clock);
    this.#scheduleUsage();
  }

  /** Writes all activity so far, including refusals that were only counted. @throws KeysError STORE_… */
  finish(): Promise<void> {
    return this.#runExclusively(async () => {
      await this.#writeEvents(true);
      await this.#writeUsage(false);
    });
  }

  #scheduleUsage(): void {
    if (this.#willFlushUsage) return;
    this.#willFlushUsage = true;
    const { clock, schedule } = this.#options;
    schedule(() => void this.#flushUsage(), Math.max(FLUSH_MS, this.#restsUntil - clock()));
  }

  #scheduleEvents(): void {
    if (this.#willFlushEvents) return;
    this.#willFlushEvents = true;
    this.#options.schedule(() => {
      this.#willFlushEvents = false;
      void this.#flushEvents();
    }, FLUSH_MS);
  }

  async #flushUsage(): Promise<void> {
    try {
      await this.#runExclusively(() => this.#writeUsageAndRest());
      await this.#options.afterUsage?.();
    } catch {
      // What could not be written was put back.
    }
  }

  async #writeUsageAndRest(): Promise<void> {
    const { clock } = this.#options;
    const began = clock();
    try {
      // What refusals were only counted may be due. If it cannot be written, it is put back.
      await this.#writeEvents(false).catch(() => {});
      await this.#writeUsage(true);
      const ended = clock();
      this.#restsUntil = ended + Math.min(REST_FACTOR * (ended - began), MAX_REST_MS);
    } finally {
      this.#willFlushUsage = false;
      if (this.#usage.size > 0) this.#scheduleUsage();
    }
  }

  /** Writes what must not wait for usage: activated rotations and refusals. */
  async #flushEvents(): Promise<void> {
    await this.#runExclusively(() => this.#writeEvents(false)).catch(() => {});
  }

  async #runExclusively(work: () => Promise<void>): Promise<void> {
    while (this.#writing) await this.#writing.catch(() => {});
    this.#writing = work().finally(() => (this.#writing = undefined));
    await this.#writing;
  }

  /** Writes piece by piece, so that other writers have their turns in between. */
  async #writeUsage(pauses: boolean): Promise<void> {
    for (const ids of await this.#usage.pieces()) {
      const began = performance.now();
      const usage = this.#usage.take(ids);
      try {
        await this.#options.writeUsage(usage);
      } catch (error) {
        this.#usage.putBack(usage);
        throw error;
      }
      if (pauses && ids.length === PIECE_KEYS) await pauseAfter(began);
    }
  }

  async #writeEvents(all: boolean): Promise<void> {
    const activated = this.#activated;
    const refusals = [...this.#drafts, ...this.#refusals.take(this.#options.clock(), all)];
    if (activated.size + refusals.length === 0) return;
    [this.#activated, this.#drafts] = [new Map(), []];
    try {
      const keys = Array.from(activated, ([id, publicId]) => ({ id, publicId }));
      await this.#options.writeEvents({ activated: keys, refusals });
    } catch (error) {
      this.#putBackEvents(activated, refusals);
      throw error;
    }
  }

  #putBackEvents(activated: ReadonlyMap<string, string>, refusals: readonly AuditDraft[]): void {
    for (const [id, publicId] of activated) if (!this.#activated.has(id)) this.#activated.set(id, publicId);
    this.#drafts = [...refusals, ...this.#drafts].slice(0, 1000);
    if (this.#activated.size + this.#drafts.length > 0) this.#scheduleEvents();
  }
}

/** Writes the activation of rotations, and refused requests. */
export async function writeEvents(
  writer: KeyWriter,
  { activated, refusals }: ActivityEvents,
  { catalog, now, operator }: { catalog: Catalog; now: number; operator: string },
): Promise<void> {
  for (const { id, publicId } of activated) {
    const key = await writer.findById(id);
    if (!key || key.damaged) continue;
    const caller = principalOf(await findChain(writer, key), catalog);
    const transaction = new Transaction(writer, { caller, catalog, now, operator });
    await activateRotation(transaction, id, publicId);
    await transaction.finish();
  }
  await writer.appendToAuditLog(refusals);
}

/** How much one transaction does, in rows: others write to a file in between. */
const STEP_ROWS = { sqlite: 2000, postgres: 20_000 } as const;
/** How often use is looked through for that of deleted keys, in milliseconds. */
const SWEEP_MS = UNIT_MS.d;

/**
 * Bounds what is kept of the use of keys: hours become days, days are removed, and so is what deleted keys leave. It
 * does so in small steps when use was written, and looks once an hour whether there is something to do. Several servers
 * may do so at once.
 */
export class UsageRetention {
  readonly #options: Pick<Parts, 'repository' | 'clock'>;
  /** In milliseconds since 1970. */
  #nextAt = 0;
  #nextSweepAt = 0;
  /** How far a sweep has come. */
  #sweptTo: string | undefined;
  #isRunning = false;

  constructor(options: Pick<Parts, 'repository' | 'clock'>) {
    this.#options = options;
  }

  /** Does all that is to be done, step by step. @throws KeysError STORE_… */
  async run(): Promise<void> {
    if (this.#isRunning) return;
    this.#isRunning = true;
    try {
      for (let isDone = false; !isDone;) {
        const began = performance.now();
        isDone = await this.step();
        if (!isDone) await pauseAfter(began);
      }
    } finally {
      this.#isRunning = false;
    }
  }

  /** Does the next step, if there is one. @returns whether it was the last one for now @throws KeysError STORE_… */
  async step(): Promise<boolean> {
    const { repository, clock } = this.#options;
    const now = clock();
    if (now < this.#nextAt) return true;
    this.#nextAt = now + UNIT_MS.h;
    const rows = STEP_ROWS[repository.kind];
    const bounds = { hoursFrom: firstKept('HOUR', now), daysFrom: firstKept('DAY', now), rows };
    const write = (work: (writer: KeyWriter) => Promise<boolean>) => repository.write(work, { counts: true });
    const isCondensed = await write((writer) => writer.port(USAGE).condense(bounds));
    const isDone = isCondensed && (now < this.#nextSweepAt || (await this.#sweep(rows, write)));
    if (!isDone) this.#nextAt = now;
    else if (now >= this.#nextSweepAt) this.#nextSweepAt = now + SWEEP_MS;
    return isDone;
  }

  /** Looks through the next keys. @returns whether there are no more */
  async #sweep(
    rows: number,
    write: (work: (writer: KeyWriter) => Promise<boolean>) => Promise<boolean>,
  ): Promise<boolean> {
    const { ids, next } = await this.#options.repository.port(USAGE).ofDeleted(this.#sweptTo);
    if (ids.length > 0 && !(await write((writer) => writer.port(USAGE).forget(ids, rows)))) return false;
    this.#sweptTo = next;
    return next === undefined;
  }
}
