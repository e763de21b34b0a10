import { type AuditDraft, type Refusal, RefusalSampler } from '../audit/index.ts';
import { type AccessObserver, findChain, principalOf } from '../authorization/index.ts';
import { activateRotation, Transaction, type TransactionOptions } from '../changes/index.ts';
import { type ApiKey, type KeyUse, type Outcome, ROUTE, TOOL, USE, type UsedGrant } from '../key/index.ts';
import type { Permission, Role } from '../permissions/index.ts';
import type { KeyWriter } from '../repository/index.ts';
import { CollectedUse } from './collected-use.ts';
import { pauseAfter, PIECE_KEYS } from './pieces.ts';

/** Events since the last write, for one transaction. */
export interface ActivityEvents {
  /** Keys whose new secret was used for the first time, each with the public id of that secret. */
  activated: { id: string; publicId: string }[];
  /** Refused requests, as entries of the audit log. */
  refusals: AuditDraft[];
}

/**
 * Writers of activity. A named batch is written once per store, by any of its processes: `false` means that it was
 * already written.
 */
export interface ActivityWriters {
  /** Adds uses of keys. If it throws, they are kept and written later. */
  writeUse: (uses: readonly KeyUse[], name?: string) => Promise<boolean | void>;
  /** Writes events. If it throws, they are kept as well. */
  writeEvents: (events: ActivityEvents, name?: string) => Promise<boolean | void>;
}

interface ActivityOptions extends ActivityWriters {
  /** Called in the background after usage was written. An error loses nothing. */
  afterUse?: (() => Promise<void>) | undefined;
  /** Milliseconds since 1970. */
  clock: () => number;
  /** Calls `work` after `delay` milliseconds. */
  schedule: (work: () => void, delayMs: number) => void;
}

/** How long activity is collected before it is written. */
const FLUSH_MS = 2000;
/** Collects uses for at least this many times as long as writing them took, up to `MAX_REST_MS`. */
const REST_FACTOR = 30;
/** The longest delay of uses, which is also the most that a crash can lose. */
const MAX_REST_MS = 30_000;

/**
 * Records how keys are used. It collects in memory and writes asynchronously, in batches, so that no request waits; a
 * crash loses only what was not written yet. With many keys in use, writing takes long and is done less often.
 */
export class Activity {
  readonly #options: ActivityOptions;
  readonly #refusals = new RefusalSampler();
  readonly #use = new CollectedUse();
  #activated = new Map<string, string>();
  #drafts: AuditDraft[] = [];
  #willFlushUse = false;
  #willFlushEvents = false;
  /** When use may be written again, in milliseconds since 1970. */
  #restsUntil = 0;
  #writing: Promise<void> | undefined;

  constructor(options: ActivityOptions) {
    this.#options = options;
  }

  /** How many uses of keys are not written yet. */
  get unwrittenUses(): number {
    return this.#use.uses;
  }

  /**
   * Records that a key was accepted by one of its secrets.
   * @returns the time, in milliseconds since 1970
   */
  used({ id, publicId, rotation }: ApiKey, secret: 'current' | 'previous'): number {
    const now = this.#options.clock();
    this.#use.addUse(id, secret, now);
    if (secret === 'current' && rotation?.previousEndsAt === null && !this.#activated.has(id)) {
      this.#activated.set(id, publicId);
      // One flush takes all waiting events.
      if (this.#activated.size === 1) this.#options.schedule(() => void this.#flushEvents(), 0);
    }
    this.#scheduleUse();
    return now;
  }

  /**
   * Records that a request of a key ended with another outcome than accepted.
   * @param usedAt when it was recorded as a use of the key, in milliseconds since 1970; undefined if it was not
   */
  ended(id: string, outcome: Exclude<Outcome, 'accepted'>, usedAt?: number): void {
    if (usedAt === undefined) this.#use.addRequest(id, outcome, this.#options.clock());
    else this.#use.changeOutcome(id, outcome, usedAt);
    this.#scheduleUse();
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
    this.#use.addGrant(id, grant, this.#options.clock);
    this.#scheduleUse();
  }

  /** Writes all activity so far, including refusals that were only counted. @throws KeysError STORE_… */
  finish(): Promise<void> {
    return this.#runExclusively(async () => {
      await this.#writeEvents(true);
      await this.#writeUse(false);
    });
  }

  #scheduleUse(): void {
    if (this.#willFlushUse) return;
    this.#willFlushUse = true;
    const { clock, schedule } = this.#options;
    schedule(() => void this.#flushUse(), Math.max(FLUSH_MS, this.#restsUntil - clock()));
  }

  #scheduleEvents(): void {
    if (this.#willFlushEvents) return;
    this.#willFlushEvents = true;
    this.#options.schedule(() => {
      this.#willFlushEvents = false;
      void this.#flushEvents();
    }, FLUSH_MS);
  }

  async #flushUse(): Promise<void> {
    try {
      await this.#runExclusively(() => this.#writeUseAndRest());
      await this.#options.afterUse?.();
    } catch {
      // A failed write was put back.
    }
  }

  async #writeUseAndRest(): Promise<void> {
    const { clock } = this.#options;
    const began = clock();
    try {
      // Counted refusals may be due. A failed write is put back.
      await this.#writeEvents(false).catch(() => {});
      await this.#writeUse(true);
      const ended = clock();
      this.#restsUntil = ended + Math.min(REST_FACTOR * (ended - began), MAX_REST_MS);
    } finally {
      this.#willFlushUse = false;
      if (this.#use.size > 0) this.#scheduleUse();
    }
  }

  /** Writes events that must not wait for usage: activated rotations and refusals. */
  async #flushEvents(): Promise<void> {
    await this.#runExclusively(() => this.#writeEvents(false)).catch(() => {});
  }

  async #runExclusively(work: () => Promise<void>): Promise<void> {
    while (this.#writing) await this.#writing.catch(() => {});
    this.#writing = work().finally(() => (this.#writing = undefined));
    await this.#writing;
  }

  /** Writes in small pieces, so that other writers get their turns between them. */
  async #writeUse(pauses: boolean): Promise<void> {
    for (const ids of await this.#use.pieces()) {
      const began = performance.now();
      const uses = this.#use.take(ids);
      try {
        await this.#options.writeUse(uses);
      } catch (error) {
        this.#use.putBack(uses);
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

/** Writes uses of keys, in a transaction that only counts. */
export async function writeUses(
  writer: KeyWriter,
  uses: readonly KeyUse[],
  listeners: TransactionOptions['listeners'],
): Promise<void> {
  await writer.port(USE).add(uses);
  for (const { used } of listeners) await used?.(writer, uses);
}

/** Writes the activation of rotations, and refused requests. */
export async function writeEvents(
  writer: KeyWriter,
  { activated, refusals }: ActivityEvents,
  options: Pick<TransactionOptions, 'catalog' | 'now' | 'operator' | 'listeners'>,
): Promise<void> {
  for (const { id, publicId } of activated) {
    const key = await writer.findById(id);
    if (!key || key.damaged) continue;
    const caller = principalOf(await findChain(writer, key), options.catalog);
    const transaction = new Transaction(writer, { caller, ...options });
    await activateRotation(transaction, id, publicId);
    await transaction.finish();
  }
  await writer.appendToAuditLog(refusals);
}

/** Takes the permissions that keys use and lack. */
type AccessRecord = Pick<Activity, 'usedPermission' | 'refused'>;

/**
 * Records which permissions a key uses and lacks. Each remembered key has one: an object with closures would take four
 * times as much memory.
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
