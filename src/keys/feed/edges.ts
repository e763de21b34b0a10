import { setTimeout as delay } from 'node:timers/promises';
import type { ActivityEvents } from '../authentication/index.ts';
import type { AuditDraft } from '../audit/index.ts';
import {
  anyText,
  anything,
  checkOptions,
  count,
  KeysError,
  list,
  oneOf,
  options,
  orNull,
  required,
  type Rule,
  type Rules,
  text,
} from '../basics/index.ts';
import type { HourUsage, KeyUsage } from '../key/index.ts';
import { FEED, type FeedChanges, type Follower, type Following, type KeyRepository } from '../repository/index.ts';

/** What an edge asks: it has taken all changes up to a position, and wants to know of those after it. */
export interface EdgePoll {
  /** A random id of the process. */
  readonly id: string;
  /** How people call it. */
  readonly name: string;
  /** The id and the name of its key. */
  readonly key: { readonly id: string; readonly name: string };
  readonly address: string | undefined;
  /** See `FeedChanges.cursor`. */
  readonly after: string;
  /** For how long it wants to answer without being told anything, in milliseconds. */
  readonly leaseMs: number;
}

/** What an edge is told, and for how long it may answer by that, in milliseconds since it asked. */
export interface FollowedAnswer extends FeedChanges {
  /** 0 while more follows. */
  readonly leaseMs: number;
  /** The time of the store, in milliseconds since 1970. */
  readonly now: number;
}

/** An edge that has asked not long ago. */
export interface KnownEdge extends Omit<EdgePoll, 'after' | 'leaseMs'> {
  /** For how many milliseconds it may still answer; 0 if it may not. */
  readonly leaseMs: number;
  /** How many milliseconds ago it was last known to have taken all changes. */
  readonly lagMs: number;
  /** How many milliseconds ago it asked for something. */
  readonly seenMs: number;
}

/** What an edge reports of the keys that it has accepted and refused. */
export interface EdgeReport extends ActivityEvents {
  /** A random id: a report that comes again does nothing. */
  readonly id: string;
  readonly usage: readonly KeyUsage[];
}

/** What `Edges` needs from outside. */
interface EdgesOptions {
  repository: KeyRepository;
  /** Milliseconds since 1970. */
  clock: () => number;
  writeUsage: (usage: readonly KeyUsage[]) => Promise<void>;
  writeEvents: (events: ActivityEvents) => Promise<void>;
}

/** A promise to an edge: it may answer until a time of `performance.now`, by what it knows at a revision of the store. */
interface Lease {
  readonly revision: number;
  until: number;
}

interface Edge extends EdgePoll {
  leases: Lease[];
  /** The revision that it is known to have taken. */
  taken: number;
  takenAt: number;
  askedAt: number;
  /** The last answer: when it asks from there, it has taken that. */
  sent: { cursor: string; revision: number } | undefined;
  /** Where nothing came after a position at a revision, and when that was found out. */
  current: { cursor: string; revision: number; at: number } | undefined;
}

/** For what part of its lease an edge waits for an answer that has no changes. */
const HOLD_PART = 1 / 4;
/** How many keys an answer tells of, and how many a page of all keys has. */
const [MAX_CHANGES, PAGE_KEYS] = [1000, 500];
/** How long it is relied on that a position is the last one while no key changes: the store forgets older ones. */
const CURRENT_MS = 5000;
/** How long an edge is remembered that asks no more, and how many are. */
const [KEPT_MS, MAX_EDGES] = [600_000, 10_000];
/** How many edges may load all keys at once. */
const MAX_LOADING = 4;
/** How many reports are remembered, so that none counts twice. */
const MAX_REPORTS = 10_000;

/**
 * Tells edges, which answer without a store, of each change, and waits for them: each has a lease within which it may
 * answer. It ends before this process takes it to have ended, as it counts from when the edge has asked.
 */
export class Edges implements Follower {
  readonly #options: EdgesOptions;
  readonly #edges = new Map<string, Edge>();
  readonly #reports = new Set<string>();
  #following: Promise<Following> | undefined;
  /** Resolves with the next change, or the next time that an edge has taken one. */
  #changed = Promise.withResolvers<void>();
  #taken = Promise.withResolvers<void>();
  #loading = 0;

  constructor(options: EdgesOptions) {
    this.#options = options;
  }

  /**
   * Answers an edge: at once if there are changes, or if it may not answer now, otherwise within a part of its lease.
   * @param signal aborted once it waits no more
   * @returns `gone` where the position is not known: it must load all keys; `full` where too many edges ask
   * @throws KeysError STORE_UNAVAILABLE while it is not sure that all changes are known, STORE_…
   */
  async poll(asked: EdgePoll, signal: AbortSignal): Promise<FollowedAnswer | 'gone' | 'full'> {
    const { repository } = this.#options;
    const { after } = asked;
    const askedAt = performance.now();
    const following = await this.#follow();
    const edge = this.#asks(asked, askedAt);
    if (!edge) return 'full';
    const holdUntil = isLeased(edge, askedAt) ? askedAt + asked.leaseMs * HOLD_PART : askedAt;
    for (;;) {
      // First of all: what is committed after that, and is not seen below, waits for this process.
      const leasedUntil = following.leasedUntil();
      const revision = repository.revision();
      const now = performance.now();
      if (revision === undefined || leasedUntil <= now) throw notSure();
      const { current } = edge;
      const changed = this.#changed.promise;
      let changes: FeedChanges = { cursor: after, rows: [], gone: [], hasMore: false };
      if (current?.cursor !== after || current.revision !== revision || current.at < now - CURRENT_MS) {
        const found = await repository.port(FEED).since(after, MAX_CHANGES, this.#changedByHand(edge));
        if (!found) return 'gone';
        changes = found;
        if (found.cursor === after) edge.current = { cursor: after, revision, at: now };
      }
      const isOver = changes.cursor !== after || performance.now() >= holdUntil || signal.aborted;
      if (isOver) return this.#answer(edge, changes, { askedAt, revision, leasedUntil });
      await Promise.race([changed, delay(holdUntil - performance.now(), undefined, { signal }).catch(() => {})]);
    }
  }

  /**
   * All keys, as lines of the feed, with what is changed meanwhile: the last line says where to go on. Where that is
   * missing, too much was changed meanwhile.
   * @throws KeysError STORE_…
   */
  async *snapshot(): AsyncGenerator<string> {
    this.#loading += 1;
    try {
      const feed = this.#options.repository.port(FEED);
      let cursor = await feed.head();
      for await (const rows of feed.pages(PAGE_KEYS)) {
        // The store remembers a number of changes alone: they are sent before it forgets them.
        yield rowLines(rows);
        for (let changes: FeedChanges | undefined; !changes || changes.hasMore;) {
          changes = await feed.since(cursor, MAX_CHANGES);
          if (!changes) return;
          cursor = changes.cursor;
          yield changeLines(changes);
        }
      }
      yield lastLine({ cursor, leaseMs: 0, now: this.#options.clock() });
    } finally {
      this.#loading -= 1;
    }
  }

  /** Whether no more edges may load all keys now. */
  get isLoadingMany(): boolean {
    return this.#loading >= MAX_LOADING;
  }

  /** Writes what an edge reports, once. @throws KeysError STORE_… */
  async report({ id, usage, ...events }: EdgeReport): Promise<void> {
    if (this.#reports.has(id)) return;
    this.#reports.add(id);
    try {
      if (usage.length > 0) await this.#options.writeUsage(usage);
      if (events.activated.length + events.refusals.length > 0) await this.#options.writeEvents(events);
    } catch (error) {
      this.#reports.delete(id);
      throw error;
    }
    for (const oldest of this.#reports) {
      if (this.#reports.size <= MAX_REPORTS) break;
      this.#reports.delete(oldest);
    }
  }

  /** The edges that have asked in the last minutes. */
  list(): KnownEdge[] {
    const now = performance.now();
    return Array.from(this.#edges.values(), (edge) => ({
      id: edge.id,
      name: edge.name,
      key: edge.key,
      address: edge.address,
      leaseMs: Math.max(...edge.leases.map(({ until }) => until - now), 0),
      lagMs: now - edge.takenAt,
      seenMs: now - edge.askedAt,
    }));
  }

  changed(): Promise<void> {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
    const revision = this.#options.repository.revision();
    return revision === undefined ? this.ended() : this.#untilKnown(revision);
  }

  ended(): Promise<void> {
    return this.#untilKnown(Number.POSITIVE_INFINITY);
  }

  /** Ends it, with the store. */
  async close(): Promise<void> {
    await (await this.#following?.catch(() => undefined))?.stop();
  }

  #follow(): Promise<Following> {
    this.#following ??= this.#options.repository.follow(this).catch((error: unknown) => {
      this.#following = undefined;
      throw error;
    });
    return this.#following;
  }

  /** Resolves once no edge may answer by what was before a revision. */
  async #untilKnown(revision: number): Promise<void> {
    for (;;) {
      const now = performance.now();
      const until = Math.max(
        ...Array.from(this.#edges.values(), ({ taken, leases }) =>
          taken >= revision ? 0 : Math.max(...leases.map((lease) => (lease.revision < revision ? lease.until : 0)), 0),
        ),
        0,
      );
      if (until <= now) return;
      await Promise.race([this.#taken.promise, delay(until - now + 1, undefined, { ref: false })]);
    }
  }

  /** Notes that an edge asks, by which it says what it has taken. */
  #asks(asked: EdgePoll, askedAt: number): Edge | undefined {
    const known = this.#edges.get(asked.id);
    if (!known && !this.#hasRoom(askedAt)) return undefined;
    const leases = known?.leases.filter(({ until }) => until > askedAt) ?? [];
    const state = known ?? { taken: -1, takenAt: askedAt, sent: undefined, current: undefined };
    const edge = Object.assign(state, asked, { leases, askedAt });
    this.#edges.set(asked.id, edge);
    if (edge.sent?.cursor === asked.after) {
      edge.taken = edge.sent.revision;
      edge.takenAt = askedAt;
      this.#taken.resolve();
      this.#taken = Promise.withResolvers();
    }
    return edge;
  }

  /**
   * The keys that others have changed in a database by hand, which its audit log does not know of, since an edge has
   * taken all. While notifications are lost, nobody knows.
   */
  #changedByHand({ taken }: Edge): readonly string[] {
    const { repository } = this.#options;
    const changed = repository.kind === 'sqlite' || taken < 0 ? [] : repository.keysChangedSince(taken);
    return changed === 'any' ? [] : changed;
  }

  #answer(
    edge: Edge,
    changes: FeedChanges,
    { askedAt, revision, leasedUntil }: { askedAt: number; revision: number; leasedUntil: number },
  ): FollowedAnswer {
    const until = Math.min(askedAt + edge.leaseMs, leasedUntil);
    const leaseMs = changes.hasMore ? 0 : Math.max(Math.floor(until - askedAt), 0);
    if (leaseMs > 0) {
      const last = edge.leases.at(-1);
      if (last?.revision === revision) last.until = Math.max(last.until, until);
      else edge.leases.push({ revision, until });
    }
    edge.sent = { cursor: changes.cursor, revision: changes.hasMore ? edge.taken : revision };
    return { ...changes, leaseMs, now: this.#options.clock() };
  }

  #hasRoom(now: number): boolean {
    for (const [id, { askedAt }] of this.#edges) if (askedAt < now - KEPT_MS) this.#edges.delete(id);
    return this.#edges.size < MAX_EDGES;
  }
}

function isLeased({ leases }: Edge, now: number): boolean {
  return leases.some(({ until }) => until > now);
}

function notSure(): KeysError {
  return new KeysError('STORE_UNAVAILABLE', 'The server is not sure that it knows of all changes. Try again.');
}

/** The lines of an answer: keys that were changed, keys that are gone, and where to go on. */
export function answerLines(answer: FollowedAnswer): string {
  return changeLines(answer) + lastLine(answer);
}

function changeLines({ rows, gone }: Pick<FeedChanges, 'rows' | 'gone'>): string {
  return rowLines(rows) + gone.map((id) => `-${JSON.stringify([id])}\n`).join('');
}

function rowLines(rows: readonly string[]): string {
  return rows.map((row) => `+${row}\n`).join('');
}

function lastLine({ cursor, leaseMs, now }: Pick<FollowedAnswer, 'cursor' | 'leaseMs' | 'now'>): string {
  return `=${JSON.stringify([cursor, leaseMs, now])}\n`;
}

const HOUR: Rules<HourUsage> = {
  start: required(count),
  // What was counted as accepted may turn out otherwise.
  accepted: required(wholeNumber),
  forbidden: required(count),
  limited: required(count),
  refused: required(count),
};
const REPORT: Rules<EdgeReport> = {
  id: required(text),
  usage: required(
    list(
      options<KeyUsage>({
        id: required(text),
        uses: required(wholeNumber),
        lastUsedAt: required(orNull(count)),
        previousLastUsedAt: required(orNull(count)),
        permissions: required(list(text) as Rule<KeyUsage['permissions']>),
        hours: required(list(options(HOUR))),
      }),
    ),
  ),
  activated: required(list(options({ id: required(text), publicId: required(text) })) as Rule<EdgeReport['activated']>),
  refusals: required(
    list(
      options<AuditDraft>({
        at: required(count),
        actor: required(
          options({
            kind: required(oneOf('KEY', 'REQUEST')),
            id: required(orNull(text)),
            name: required(orNull(anyText)),
          }),
        ),
        action: required(oneOf('REFUSE', 'OBSERVE')),
        apiKey: required(orNull(options({ id: required(text), name: required(text) }))),
        before: required(orNull(anything)),
        after: required(anything),
        address: text,
      }),
    ) as Rule<EdgeReport['refusals']>,
  ),
};

function wholeNumber(value: unknown): string | undefined {
  return Number.isSafeInteger(value) ? undefined : 'must be a whole number.';
}

/** Reads what an edge reports. @throws KeysError OPTION_INVALID */
export function readEdgeReport(given: unknown): EdgeReport {
  checkOptions<EdgeReport>('The report', given, REPORT);
  return given as EdgeReport;
}
