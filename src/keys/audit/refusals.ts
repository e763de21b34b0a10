import { withoutUndefined } from '../basics/index.ts';
import type { AuditActor, AuditDraft } from './audit-entry.ts';

/** A request whose key was refused or lacked a permission. */
export interface Refusal {
  /** `forbidden`, or why the key was refused. */
  reason: string;
  /** The maker of the request. */
  actor: AuditActor;
  /** The key that was refused, if it is known. */
  apiKey: AuditDraft['apiKey'];
  /** The permissions that were missing. */
  missing?: readonly string[] | undefined;
  /** The tool of an MCP server that was called. */
  tool?: string | undefined;
  /** The client's address, if it is known. */
  address?: string | undefined;
  /** The pattern of the route that let the request pass because it only observes. */
  route?: string | undefined;
  /** Where it was refused, unless by this process: the id of the key that has reported it, and details for the entry. */
  elsewhere?: { readonly reporter: string; readonly details: Readonly<Record<string, unknown>> } | undefined;
}

/** A kind of refusal, and how many of it are not recorded yet. */
interface CountedRefusal {
  refusal: Refusal;
  count: number;
}

/** How long repeated refusals are only counted. */
const PERIOD_MS = 600_000;
/** How many kinds of refusals of one key are counted separately in one period; the others share one count. */
const MAX_KINDS = 5;
/** The number of keys counted separately in one period: in all, and as reported by one key. */
const [MAX_KEYS, MAX_REPORTED_KEYS] = [1000, 100];
/** The kind that stands for all kinds beyond `MAX_KINDS`. */
const VARIOUS = '';

/**
 * Samples refusals for the audit log: each kind once in a period, and its repetitions as one count at the end of the
 * period. The number of entries is bounded however many requests a client sends. Known keys have bounds of their own,
 * so that requests without a known key cannot hide them.
 */
export class RefusalSampler {
  #keys = new Map<string, Map<string, CountedRefusal>>();
  /** The number of counted keys, by the id of the key that reported them; undefined for this process. */
  #sizes = new Map<string | undefined, number>();
  #periodEnd = 0;
  #due: AuditDraft[] = [];

  /** Records a refusal, or several of its kind, at a time in milliseconds since 1970. */
  add(refusal: Refusal, now: number, times = 1): void {
    this.#endPeriod(now);
    const { elsewhere, route } = refusal;
    const most = elsewhere ? MAX_REPORTED_KEYS : MAX_KEYS;
    if ((this.#sizes.get(elsewhere?.reporter) ?? 0) < most || this.#keys.has(keyOf(refusal)))
      this.#count(refusal, now, times);
    // A report can name routes that do not exist, so these are merged, too.
    else
      this.#count(
        generalize({ actor: NOBODY, apiKey: null, elsewhere, route: elsewhere && route ? '' : route }),
        now,
        times,
      );
  }

  #count(refusal: Refusal, now: number, times: number): void {
    const { reason, actor, missing, tool, address, elsewhere } = refusal;
    const key = keyOf(refusal);
    let kinds = this.#keys.get(key);
    if (!kinds) {
      this.#keys.set(key, (kinds = new Map<string, CountedRefusal>()));
      this.#sizes.set(elsewhere?.reporter, (this.#sizes.get(elsewhere?.reporter) ?? 0) + 1);
    }
    const kind = JSON.stringify([reason, actor.name, missing, tool, address]);
    const counted = kinds.get(kind) ?? kinds.get(VARIOUS);
    if (counted) counted.count += times;
    else if (kinds.size < MAX_KINDS) {
      kinds.set(kind, { refusal, count: 0 });
      this.#addDraft(refusal, times, now);
    } else kinds.set(VARIOUS, { refusal: generalize(refusal), count: times });
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
    this.#sizes = new Map();
    this.#periodEnd = now + PERIOD_MS;
  }

  #addDraft(
    { reason, actor, apiKey, missing, tool, address, route, elsewhere }: Refusal,
    count: number,
    at: number,
  ): void {
    const optional = { missing, tool, route, ...elsewhere?.details };
    const after = { reason, count, ...withoutUndefined(optional) };
    this.#due.push({
      at,
      actor,
      action: route === undefined ? 'REFUSE' : 'OBSERVE',
      apiKey,
      before: null,
      after,
      ...(address !== undefined && { address }),
    });
  }
}

const NOBODY: AuditActor = { kind: 'REQUEST', id: null, name: null };

/** Identifies the key that a refusal concerns; the same for all that concern none. */
function keyOf({ actor, apiKey, route, elsewhere }: Pick<Refusal, 'actor' | 'apiKey' | 'route' | 'elsewhere'>): string {
  return JSON.stringify([actor.id, apiKey?.id, route, elsewhere?.reporter]);
}

/** Reduces a refusal to the part that all kinds share: the key, if it is known. */
function generalize({ actor, apiKey, route, elsewhere }: Omit<Refusal, 'reason'>): Refusal {
  return { reason: 'various', actor: actor.kind === 'KEY' ? actor : NOBODY, apiKey, route, elsewhere };
}
