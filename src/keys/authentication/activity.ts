import type { ApiKey } from '../key/api-key.ts';
import type { AuditDraft } from '../audit/audit-entry.ts';
import type { Permission } from '../permissions/catalog.ts';
import type { AccessObserver } from '../authorization/principal.ts';
import { type Refusal, RefusalSampler } from '../audit/refusals.ts';
import { type KeyUsage, NO_USAGE } from '../key/usage.ts';

/** What was seen since the last time, to be written at once. */
export interface ActivityBatch {
  usage: KeyUsage[];
  /** The keys whose new secret was seen for the first time, each with the public id of that secret. */
  activated: { id: string; publicId: string }[];
  refusals: AuditDraft[];
}

export interface ActivityOptions {
  /** Writes a batch. Where it can't, the batch is kept for the next time. */
  write: (batch: ActivityBatch) => Promise<void>;
  /** Milliseconds since 1970. */
  clock: () => number;
  /** Does something later, after so many milliseconds. */
  schedule: (work: () => void, delay: number) => void;
}

/** What was seen of one key. */
interface Seen {
  uses: number;
  /** 0 while none of its uses was counted. */
  lastUsedAt: number;
  previousLastUsedAt: number | null;
  grants: Set<Permission>;
}

/** How long uses are collected before they are written, in milliseconds. */
const FLUSH_MS = 2000;

/**
 * What keys are used for. It is collected in memory, never on a request's path, and written behind in batches: a crash
 * loses what was seen in the last seconds, and nothing else.
 */
export class Activity {
  readonly #options: ActivityOptions;
  readonly #refusals = new RefusalSampler();
  #usage = new Map<string, Seen>();
  #activated = new Map<string, string>();
  #drafts: AuditDraft[] = [];
  #scheduled = false;
  #writing: Promise<void> | undefined;

  constructor(options: ActivityOptions) {
    this.#options = options;
  }

  /** A key was let in by one of its secrets. */
  used({ id, publicId, rotation }: ApiKey, secret: 'current' | 'previous'): void {
    const usage = this.#usageOf(id);
    usage.uses += 1;
    usage.lastUsedAt = this.#options.clock();
    if (secret === 'previous') usage.previousLastUsedAt = usage.lastUsedAt;
    else if (rotation?.previousEndsAt === null && !this.#activated.has(id)) {
      this.#activated.set(id, publicId);
      this.#options.schedule(() => void this.#writeInBackground(), 0);
    }
    this.#schedule();
  }

  /** A request was refused. */
  refused(refusal: Refusal): void {
    this.#refusals.add(refusal, this.#options.clock());
    this.#schedule();
  }

  /** Sees what a key makes use of. */
  observerOf({ id, name }: ApiKey): AccessObserver {
    return {
      used: (grant) => void this.#usageOf(id).grants.add(grant),
      lacked: (missing) =>
        this.refused({
          reason: 'forbidden',
          actor: { kind: 'KEY', id, name },
          key: null,
          missing: missing.slice(0, 5),
        }),
    };
  }

  /** Writes what was seen so far, at the end of the program: refusals that were only counted, too. @throws KeysError STORE_… */
  async finish(): Promise<void> {
    await this.#writing?.catch(() => {});
    await this.#write(true);
  }

  #usageOf(id: string): Seen {
    let usage = this.#usage.get(id);
    if (!usage) this.#usage.set(id, (usage = { uses: 0, lastUsedAt: 0, previousLastUsedAt: null, grants: new Set() }));
    return usage;
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#options.schedule(() => {
      this.#scheduled = false;
      void this.#writeInBackground();
    }, FLUSH_MS);
  }

  async #writeInBackground(): Promise<void> {
    try {
      await (this.#writing ??= this.#write(false).finally(() => (this.#writing = undefined)));
    } catch {
      this.#schedule(); // The store can't take it now: it is kept.
    }
  }

  async #write(all: boolean): Promise<void> {
    const [usage, activated] = [this.#usage, this.#activated];
    const refusals = [...this.#drafts, ...this.#refusals.take(this.#options.clock(), all)];
    if (usage.size + activated.size + refusals.length === 0) return;
    [this.#usage, this.#activated, this.#drafts] = [new Map(), new Map(), []];
    try {
      await this.#options.write({
        usage: Array.from(usage, ([id, seen]) => ({ ...NO_USAGE, ...seen, id, lastUsedAt: seen.lastUsedAt || null })),
        activated: Array.from(activated, ([id, publicId]) => ({ id, publicId })),
        refusals,
      });
    } catch (error) {
      this.#keep(usage, activated, refusals);
      throw error;
    }
  }

  #keep(
    usage: ReadonlyMap<string, Seen>,
    activated: ReadonlyMap<string, string>,
    refusals: readonly AuditDraft[],
  ): void {
    for (const [id, seen] of usage) {
      const kept = this.#usageOf(id);
      kept.uses += seen.uses;
      kept.lastUsedAt ||= seen.lastUsedAt;
      kept.previousLastUsedAt ??= seen.previousLastUsedAt;
      for (const grant of seen.grants) kept.grants.add(grant);
    }
    for (const [id, publicId] of activated) if (!this.#activated.has(id)) this.#activated.set(id, publicId);
    this.#drafts = [...refusals, ...this.#drafts].slice(0, 1000);
  }
}
