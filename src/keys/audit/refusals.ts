import type { AuditActor, AuditDraft } from './audit-entry.ts';

/** A request whose key was refused or lacked a permission. */
export interface Refusal {
  /** `forbidden`, or why the key was refused. */
  reason: string;
  /** Who made the request. */
  actor: AuditActor;
  /** The key that was refused, if it is known. */
  apiKey: AuditDraft['apiKey'];
  /** The permissions that were missing. */
  missing?: readonly string[] | undefined;
  /** The client's address, if it is known. */
  address?: string | undefined;
}

/** A kind of refusals, and how many of it were not recorded yet. */
interface CountedRefusal {
  refusal: Refusal;
  count: number;
}

/** How long repeated refusals are only counted. */
const PERIOD_MS = 600_000;
/** How many kinds of refusals of one key are counted separately in one period; the others share one count. */
const MAX_KINDS = 5;
/** How many keys are told apart in one period. */
const MAX_KEYS = 1000;
/** The kind of those that share one count. */
const VARIOUS = '';

/**
 * Samples refusals for the audit log: each kind once in a period, and its repetitions as one count at its end. However
 * many requests a client sends, the number of entries is bounded: for each key that is known, and for all requests
 * without a known key together, so that those cannot hide what concerns a key.
 */
export class RefusalSampler {
  #keys = new Map<string, Map<string, CountedRefusal>>();
  #periodEnd = 0;
  #due: AuditDraft[] = [];

  /** Records a refusal at a time in milliseconds since 1970. */
  add(refusal: Refusal, now: number): void {
    this.#endPeriod(now);
    const hasRoom = this.#keys.size < MAX_KEYS || this.#keys.has(keyOf(refusal));
    this.#count(hasRoom ? refusal : generalize({ actor: NOBODY, apiKey: null }), now);
  }

  #count(refusal: Refusal, now: number): void {
    const { reason, actor, missing, address } = refusal;
    const key = keyOf(refusal);
    const kinds = this.#keys.get(key) ?? new Map<string, CountedRefusal>();
    this.#keys.set(key, kinds);
    const kind = JSON.stringify([reason, actor.name, missing, address]);
    const counted = kinds.get(kind) ?? kinds.get(VARIOUS);
    if (counted) counted.count += 1;
    else if (kinds.size < MAX_KINDS) {
      kinds.set(kind, { refusal, count: 0 });
      this.#addDraft(refusal, 1, now);
    } else kinds.set(VARIOUS, { refusal: generalize(refusal), count: 1 });
  }

  /** Removes and returns the entries that are due; with `all` also the counts of the current period. */
  take(now: number, all = false): AuditDraft[] {
    this.#endPeriod(all ? Number.POSITIVE_INFINITY : now, now);
    const due = this.#due;
    this.#due = [];
    return due;
  }

  #endPeriod(until: number, now = until): void {
    if (until < this.#periodEnd) return;
    for (const kinds of this.#keys.values())
      for (const { refusal, count } of kinds.values()) if (count > 0) this.#addDraft(refusal, count, now);
    this.#keys = new Map();
    this.#periodEnd = now + PERIOD_MS;
  }

  #addDraft({ reason, actor, apiKey, missing, address }: Refusal, count: number, at: number): void {
    const after = { reason, count, ...(missing && { missing }) };
    this.#due.push({
      at,
      actor,
      action: 'REFUSE',
      apiKey,
      before: null,
      after,
      ...(address !== undefined && { address }),
    });
  }
}

const NOBODY: AuditActor = { kind: 'REQUEST', id: null, name: null };

/** What identifies the key that a refusal concerns; the same for all that concern none. */
function keyOf({ actor, apiKey }: Refusal): string {
  return JSON.stringify([actor.id, apiKey?.id]);
}

/** What refusals of different kinds have in common: the key, if it is known. */
function generalize({ actor, apiKey }: Pick<Refusal, 'actor' | 'apiKey'>): Refusal {
  return { reason: 'various', actor: actor.kind === 'KEY' ? actor : NOBODY, apiKey };
}
