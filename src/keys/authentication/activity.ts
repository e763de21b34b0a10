import type { ApiKey } from '../key/api-key.ts';
import type { AuditDraft } from '../audit/audit-entry.ts';
import type { Permission } from '../permissions/catalog.ts';
import type { AccessObserver } from '../authorization/principal.ts';
import { type Refusal, RefusalSampler } from '../audit/refusals.ts';
import type { KeyUsage } from '../key/usage.ts';

/** Activity since the last batch, written in one transaction. */
export interface ActivityBatch {
  /** What to add to the totals of keys. */
  usage: KeyUsage[];
  /** Keys whose new secret was used for the first time, each with the public id of that secret. */
  activated: { id: string; publicId: string }[];
  /** Refused requests, as entries of the audit log. */
  refusals: AuditDraft[];
}

/** What `Activity` needs from outside. */
export interface ActivityOptions {
  /** Writes a batch. When it throws, the batch is kept and written later. */
  write: (batch: ActivityBatch) => Promise<void>;
  /** Milliseconds since 1970. */
  clock: () => number;
  /** Calls `work` after `delay` milliseconds. */
  schedule: (work: () => void, delay: number) => void;
}

/** The recorded activity of one key. */
interface KeyActivity {
  uses: number;
  /** 0 while `uses` is 0. */
  lastUsedAt: number;
  previousLastUsedAt: number | null;
  permissions: Set<Permission>;
}

/** How long activity is collected before it is written. */
const FLUSH_MS = 2000;

/**
 * Records what keys are used for. It collects in memory and writes asynchronously, in batches, so that no request waits
 * for it; a crash loses the last seconds of activity and nothing else.
 */
export class Activity {
  readonly #options: ActivityOptions;
  readonly #refusals = new RefusalSampler();
  #usage = new Map<string, KeyActivity>();
  #activated = new Map<string, string>();
  #drafts: AuditDraft[] = [];
  #scheduled = false;
  #writing: Promise<void> | undefined;

  constructor(options: ActivityOptions) {
    this.#options = options;
  }

  /** Records that a key was accepted by one of its secrets. */
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

  /** Records a refused request. */
  refused(refusal: Refusal): void {
    this.#refusals.add(refusal, this.#options.clock());
    this.#schedule();
  }

  /** Records which permissions a key uses and lacks. */
  observerOf(key: ApiKey): AccessObserver {
    return new KeyObserver(this, key);
  }

  /** Records that a key has used a permission. */
  usedPermission(id: string, permission: Permission): void {
    this.#usageOf(id).permissions.add(permission);
  }

  /** Writes all activity so far, including refusals that were only counted. @throws KeysError STORE_… */
  async finish(): Promise<void> {
    await this.#writing?.catch(() => {});
    await this.#write(true);
  }

  #usageOf(id: string): KeyActivity {
    let usage = this.#usage.get(id);
    if (!usage) {
      usage = { uses: 0, lastUsedAt: 0, previousLastUsedAt: null, permissions: new Set() };
      this.#usage.set(id, usage);
    }
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
      this.#schedule(); // The batch was put back: it is written later.
    }
  }

  async #write(all: boolean): Promise<void> {
    const [usage, activated] = [this.#usage, this.#activated];
    const refusals = [...this.#drafts, ...this.#refusals.take(this.#options.clock(), all)];
    if (usage.size + activated.size + refusals.length === 0) return;
    [this.#usage, this.#activated, this.#drafts] = [new Map(), new Map(), []];
    try {
      await this.#options.write({
        usage: Array.from(usage, ([id, recorded]) => ({
          ...recorded,
          id,
          lastUsedAt: recorded.lastUsedAt || null,
        })),
        activated: Array.from(activated, ([id, publicId]) => ({ id, publicId })),
        refusals,
      });
    } catch (error) {
      this.#putBack(usage, activated, refusals);
      throw error;
    }
  }

  #putBack(
    usage: ReadonlyMap<string, KeyActivity>,
    activated: ReadonlyMap<string, string>,
    refusals: readonly AuditDraft[],
  ): void {
    for (const [id, recorded] of usage) {
      const current = this.#usageOf(id);
      current.uses += recorded.uses;
      current.lastUsedAt ||= recorded.lastUsedAt;
      current.previousLastUsedAt ??= recorded.previousLastUsedAt;
      for (const permission of recorded.permissions) current.permissions.add(permission);
    }
    for (const [id, publicId] of activated) if (!this.#activated.has(id)) this.#activated.set(id, publicId);
    this.#drafts = [...refusals, ...this.#drafts].slice(0, 1000);
  }
}

/** One for each key that is remembered: an object with closures would take four times as much memory. */
class KeyObserver implements AccessObserver {
  readonly #activity: Activity;
  readonly #key: ApiKey;

  constructor(activity: Activity, key: ApiKey) {
    this.#activity = activity;
    this.#key = key;
  }

  used(permission: Permission): void {
    this.#activity.usedPermission(this.#key.id, permission);
  }

  lacked(permissions: readonly Permission[], address?: string): void {
    const { id, name } = this.#key;
    this.#activity.refused({
      reason: 'forbidden',
      actor: { kind: 'KEY', id, name },
      key: null,
      missing: permissions.slice(0, 5),
      address,
    });
  }
}
