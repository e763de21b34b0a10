import type { AuditActor, AuditDraft } from './audit-entry.ts';

/** A request whose key was refused or lacked a permission. */
export interface Refusal {
  /** `forbidden`, or why the key was refused. */
  reason: string;
  /** Who made the request. */
  actor: AuditActor;
  /** The key that was refused, if it is known. */
  key: AuditDraft['key'];
  /** The permissions that were missing. */
  missing?: readonly string[] | undefined;
}

/** How long repeated refusals are only counted. */
const PERIOD_MS = 60_000;
/** How many kinds of refusals are counted separately in one period; the others share one count. */
const MAX_KINDS = 50;

/**
 * Samples refusals for the audit log: each kind once a minute, and its repetitions as one count a minute later. However
 * many requests a client sends, the number of entries is bounded.
 */
export class RefusalSampler {
  #counts = new Map<string, { refusal: Refusal; count: number }>();
  #periodEnd = 0;
  #due: AuditDraft[] = [];

  /** Records a refusal at a time in milliseconds since 1970. */
  add(refusal: Refusal, now: number): void {
    this.#endPeriod(now);
    const { reason, actor, key, missing } = refusal;
    const hasRoom = this.#counts.size < MAX_KINDS;
    const kind = JSON.stringify([reason, actor, key?.id, missing]);
    const counted = this.#counts.get(kind) ?? (hasRoom ? undefined : this.#counts.get(''));
    if (counted) counted.count += 1;
    else if (hasRoom) {
      this.#counts.set(kind, { refusal, count: 0 });
      this.#addDraft(refusal, 1, now);
    } else
      this.#counts.set('', {
        refusal: { reason: 'various', actor: { kind: 'REQUEST', id: null, name: null }, key: null },
        count: 1,
      });
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
    for (const { refusal, count } of this.#counts.values()) if (count > 0) this.#addDraft(refusal, count, now);
    this.#counts = new Map();
    this.#periodEnd = now + PERIOD_MS;
  }

  #addDraft({ reason, actor, key, missing }: Refusal, count: number, at: number): void {
    this.#due.push({
      at,
      actor,
      action: 'REFUSE',
      key,
      before: null,
      after: { reason, count, ...(missing && { missing }) },
    });
  }
}
