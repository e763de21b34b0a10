import type { ApiKey } from '../key/api-key.ts';
import type { AuditDraft } from '../audit/audit-entry.ts';
import type { AccessObserver } from '../authorization/principal.ts';
import { type Refusal, RefusalSampler } from '../audit/refusals.ts';
import type { KeyUsage, UsedGrant } from '../key/usage.ts';
import type { Outcome } from '../usage/outcomes.ts';
import { CollectedUsage } from './collected-usage.ts';
import { KeyObserver } from './key-observer.ts';

/** Some of the activity since it was last written, for one transaction. */
export interface ActivityBatch {
  /** What to add to the totals of keys. */
  usage: readonly KeyUsage[];
  /** Keys whose new secret was used for the first time, each with the public id of that secret. */
  activated: { id: string; publicId: string }[];
  /** Refused requests, as entries of the audit log. */
  refusals: AuditDraft[];
}

/** What `Activity` needs from outside. */
export interface ActivityOptions {
  /** Writes a batch. When it throws, the batch is kept and written later. */
  write: (batch: ActivityBatch) => Promise<void>;
  /** Is called after usage was written, in the background. When it throws, nothing is lost. */
  afterUsage?: () => Promise<void>;
  /** Milliseconds since 1970. */
  clock: () => number;
  /** Calls `work` after `delay` milliseconds. */
  schedule: (work: () => void, delay: number) => void;
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

  /** Records a refused request. */
  refused(refusal: Refusal): void {
    this.#refusals.add(refusal, this.#options.clock());
    this.#scheduleEvents();
  }

  /** Records which permissions a key uses and lacks. */
  observerOf(key: ApiKey): AccessObserver {
    return new KeyObserver(this, key);
  }

  /** Records that a key has used a permission, or has granted a role. */
  usedPermission(id: string, grant: UsedGrant): void {
    this.#usage.addGrant(id, grant, this.#options.clock);
    this.#scheduleUsage();
  }

  /** Writes all activity so far, including refusals that were only counted. @throws KeysError STORE_… */
  finish(): Promise<void> {
    return this.#inTurn(() => this.#writeUsage(true));
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
      await this.#inTurn(async () => {
        await this.#writeUsageAndRest();
        await this.#options.afterUsage?.();
      });
    } catch {
      // What could not be written was put back.
    }
  }

  async #writeUsageAndRest(): Promise<void> {
    const { clock } = this.#options;
    const began = clock();
    try {
      await this.#writeUsage(false);
      const ended = clock();
      this.#restsUntil = ended + Math.min(REST_FACTOR * (ended - began), MAX_REST_MS);
    } finally {
      this.#willFlushUsage = false;
      if (this.#usage.size > 0) this.#scheduleUsage();
    }
  }

  /** Writes what must not wait for usage: activated rotations and refusals. */
  async #flushEvents(): Promise<void> {
    await this.#inTurn(() => this.#write([], false)).catch(() => {});
  }

  async #inTurn(work: () => Promise<void>): Promise<void> {
    while (this.#writing) await this.#writing.catch(() => {});
    this.#writing = work().finally(() => (this.#writing = undefined));
    await this.#writing;
  }

  /** Writes piece by piece, so that other writers have their turns in between. */
  async #writeUsage(all: boolean): Promise<void> {
    const [first = [], ...others] = await this.#usage.pieces();
    await this.#write(first, all);
    for (const ids of others) await this.#write(ids, all);
  }

  async #write(ids: readonly string[], all: boolean): Promise<void> {
    const activated = this.#activated;
    const refusals = [...this.#drafts, ...this.#refusals.take(this.#options.clock(), all)];
    const usage = this.#usage.take(ids);
    if (usage.length + activated.size + refusals.length === 0) return;
    [this.#activated, this.#drafts] = [new Map(), []];
    try {
      const keys = Array.from(activated, ([id, publicId]) => ({ id, publicId }));
      await this.#options.write({ usage, activated: keys, refusals });
    } catch (error) {
      this.#usage.putBack(usage);
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
