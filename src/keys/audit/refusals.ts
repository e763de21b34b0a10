import type { AuditActor, AuditDraft } from './audit-entry.ts';

/** A request that was not let in, or not let do what it asked for. */
export interface Refusal {
  reason: string;
  actor: AuditActor;
  key: AuditDraft['key'];
  /** The grants that were missing. */
  missing?: readonly string[] | undefined;
}

/** For how long the same refusal is only counted, in milliseconds, and how many are told apart meanwhile. */
const PERIOD_MS = 60_000;
const MAX_KINDS = 50;

/**
 * Chooses which refusals are written down: each kind once a minute, and its repetitions as one number a minute later.
 * Whoever sends any number of requests makes a bounded number of entries.
 */
export class RefusalSampler {
  #counts = new Map<string, { refusal: Refusal; count: number }>();
  #periodEnd = 0;
  #chosen: AuditDraft[] = [];

  add(refusal: Refusal, now: number): void {
    this.#endPeriod(now);
    const { reason, actor, key, missing } = refusal;
    const known = this.#counts.size < MAX_KINDS;
    const kind = JSON.stringify([reason, actor, key?.id, missing]);
    const counted = this.#counts.get(kind) ?? (known ? undefined : this.#counts.get(''));
    if (counted) counted.count += 1;
    else if (known) {
      this.#counts.set(kind, { refusal, count: 0 });
      this.#choose(refusal, 1, now);
    } else
      this.#counts.set('', {
        refusal: { reason: 'various', actor: { kind: 'REQUEST', id: null, name: null }, key: null },
        count: 1,
      });
  }

  /** What is to be written down now; with `all` also the numbers of a minute that has not ended. */
  take(now: number, all = false): AuditDraft[] {
    this.#endPeriod(all ? Number.POSITIVE_INFINITY : now, now);
    const chosen = this.#chosen;
    this.#chosen = [];
    return chosen;
  }

  #endPeriod(until: number, now = until): void {
    if (until < this.#periodEnd) return;
    for (const { refusal, count } of this.#counts.values()) if (count > 0) this.#choose(refusal, count, now);
    this.#counts = new Map();
    this.#periodEnd = now + PERIOD_MS;
  }

  #choose({ reason, actor, key, missing }: Refusal, count: number, at: number): void {
    this.#chosen.push({
      at,
      actor,
      action: 'REFUSE',
      key,
      before: null,
      after: { reason, count, ...(missing && { missing }) },
    });
  }
}
