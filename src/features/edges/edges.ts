import { KeysError, UUID, Wakeup } from '../../keys/basics/index.ts';
import { type Follower, type Following, STORE_LEASE_MS } from '../../keys/repository/index.ts';
import type { SharedParts } from '../../keys/service/index.ts';
import { FEED, type FeedChanges, type KnownEdge, LISTED_MS, TELL_MS } from './feed.ts';

/** An edge that makes a request. */
export interface EdgeAsking extends Pick<KnownEdge, 'id' | 'name' | 'key'> {
  readonly address: string | undefined;
  /** The requested lease: how long it can answer on its own, in milliseconds. */
  readonly leaseMs: number;
  /**
   * How long, while it has no requests, it only waits for changes without a lease, in milliseconds. Undefined or 0
   * while it has requests.
   */
  readonly restMs?: number | undefined;
}

/** A poll of an edge: it has taken all changes up to a position, and asks for those after it. */
export interface EdgePoll extends EdgeAsking {
  /** See `FeedChanges.cursor`. */
  readonly after: string;
  /** How long an answer without changes can be held back: less than usual over a slow connection. */
  readonly holdMs?: number | undefined;
}

/** The answer to an edge, with the lease in milliseconds, counted from its request. */
export interface FollowedAnswer extends FeedChanges {
  /** 0 while more follows. */
  readonly leaseMs: number;
}

/** An edge, for lists. */
export interface ListedEdge extends Omit<KnownEdge, 'restMs' | 'seenMs'> {
  /** True if it needs no lease, because it has no requests. */
  readonly isResting: boolean;
  /** The time of its last request, in milliseconds since 1970. */
  readonly lastAskedAt: number;
}

/** An edge for users. */
export function listedEdge({ seenMs, leaseMs, restMs, lagMs, ...edge }: KnownEdge, now: number): ListedEdge {
  return {
    ...edge,
    leaseMs: Math.round(leaseMs),
    isResting: restMs > 0,
    lagMs: Math.round(lagMs),
    lastAskedAt: Math.round(now - seenMs),
  };
}

type EdgesOptions = Pick<SharedParts, 'repository' | 'clock' | 'onClose'>;

/** A state of the store that an edge knows: the number of notifications, and `KeyRepository.revision`. */
export interface Knowledge {
  readonly times: number;
  readonly revision: number;
}

/** A promise to an edge: until a time of `performance.now`, it can answer from this many notifications. */
interface Lease {
  readonly times: number;
  until: number;
}

interface Edge extends EdgeAsking {
  leases: Lease[];
  /** The state that it has confirmed. */
  taken: Knowledge;
  takenAt: number;
  askedAt: number;
  /** The end of its rest. */
  restsUntil: number;
  /** The last answer. A request from its position confirms that it was taken. */
  sent: { cursor: string; told: Knowledge } | undefined;
  /** A position known to be the last one, and the time when that was found out. */
  current: { cursor: string; times: number; at: number } | undefined;
}

/** Forms of an edge's own data: a UUID, a name, and the bounds of its lease and rest, in milliseconds. */
export const EDGE_FORMS = {
  id: UUID,
  name: /^[^\p{C}]{1,200}$/u,
  leaseMs: { least: 100, most: 60_000 },
  mostRestMs: 60_000,
} as const;
const NEVER: Knowledge = { times: -1, revision: -1 };
/**
 * How much earlier an edge must stop than its lease ends, in milliseconds: two clocks run at slightly different rates.
 */
const DRIFT_MS = 2;
/** The part of its lease for which an answer without changes is held back. */
const HOLD_PART = 1 / 2;
/** How many unaffected edges are answered together, since waking up takes longer than answering most of them. */
const EDGES_TOGETHER = 64;
/** How early a timer can fire, in milliseconds. */
const EARLY_MS = 1;
/** How many keys an answer has, and how many a page of all keys has. */
const [MAX_CHANGES, PAGE_KEYS] = [1000, 500];
/** How long a position counts as the last one while no key changes: the store forgets older positions. */
const CURRENT_MS = 5000;
/** How many edges are remembered while they are listed, and how many per key. */
const [MAX_EDGES, MAX_EDGES_OF_KEY] = [10_000, 1000];
/** The delay from which on a change counts as delayed by the edges of a key, in milliseconds. */
const SLOW_MS = 500;
/** How long delays caused by the edges of a key are remembered, in milliseconds. */
const DELAYS_MS = 600_000;
/** How many edges can load all keys at the same time. */
const MAX_LOADING = 4;

/**
 * Sends each change to edges, which answer without a store, and waits for them: each has a lease within which it can
 * answer. The edge counts the lease from its request, so its lease ends before this process considers it over.
 */
export class Edges implements Follower {
  readonly #options: EdgesOptions;
  readonly #edges = new Map<string, Edge>();
  /** How many changes the edges of a key have delayed, and when they last did, by key id. */
  readonly #delays = new Map<string, { count: number; at: number }>();
  readonly #listeners = new Set<() => void>();
  #following: Promise<Following> | undefined;
  /** Woken by each change, and whenever an edge has taken one. */
  readonly #changed = new Wakeup();
  readonly #taken = new Wakeup();
  #loading = 0;
  /** The number of notifications. It also counts created keys, which do not change the revision. */
  #times = 0;
  #toldAt = Number.NEGATIVE_INFINITY;
  #telling: NodeJS.Timeout | undefined;
  readonly #waited = { count: 0, seconds: 0 };

  constructor(options: EdgesOptions) {
    this.#options = options;
    options.onClose(() => this.#close());
  }

  /**
   * Answers an edge: at once if there are changes or it holds no lease, otherwise within a part of its lease.
   * @param signal aborted when the edge disconnects or the server stops
   * @returns `gone` if the position is unknown and it must load all keys; `full` if too many edges ask
   * @throws KeysError STORE_UNAVAILABLE while changes may be missing, STORE_…
   */
  async poll(asked: EdgePoll, signal: AbortSignal): Promise<FollowedAnswer | 'gone' | 'full'> {
    const { after } = asked;
    const askedAt = performance.now();
    const following = await this.#follow();
    const edge = this.#asks(asked, askedAt);
    if (!edge) return 'full';
    if (edge.sent?.cursor === after) this.#hasTaken(edge, edge.sent.told, askedAt);
    // A lease can be shorter than requested.
    const leasedMs = Math.min(asked.holdMs ?? Infinity, asked.leaseMs * HOLD_PART, leaseMsOf(edge, askedAt) / 2);
    const heldUntil = this.#turnOf(edge, asked.restMs || leasedMs);
    if (asked.restMs) this.#tell(following);
    for (;;) {
      const { told, lease } = this.#promise(edge, following);
      const now = performance.now();
      const changes = await this.#changesAfter(after, edge, told).catch((error: unknown) => {
        lease.until = 0;
        throw error;
      });
      const isNew = changes?.cursor !== after;
      const isOver = isNew || performance.now() >= heldUntil - EARLY_MS || signal.aborted;
      // A disconnected edge gets no lease. After a rest, the clocks may differ too much for a lease counted from its
      // beginning, and changes would wait for one that is not renewed.
      const isGiven = isOver && !asked.restMs && !signal.aborted && changes?.hasMore === false;
      const leaseMs = isGiven ? grantedMs(lease, askedAt) : 0;
      if (leaseMs === 0) lease.until = 0;
      if (!changes) return 'gone';
      if (!isNew) this.#hasTaken(edge, told, now);
      if (isOver) {
        if (signal.aborted && edge.askedAt === askedAt) edge.restsUntil = 0;
        edge.sent = { cursor: changes.cursor, told: changes.hasMore ? edge.taken : told };
        this.#tell(following);
        return { ...changes, leaseMs };
      }
      if (this.#times === told.times) await this.#changed.wait(heldUntil - performance.now(), signal);
    }
  }

  /**
   * Gives a lease to an edge that receives changes by another way, once everything known here is available to it.
   * @param taken the state that it has confirmed, which can advance while it waits
   * @param published resolves once this many notifications are available to it; rejects if the edge must not answer
   * @returns the lease in milliseconds since its request, valid once it has taken that; `full` as for `poll`
   * @throws KeysError STORE_UNAVAILABLE as for `poll`; rejections of `published`
   */
  async renew(
    asked: EdgeAsking,
    taken: () => Knowledge | undefined,
    published: (times: number) => Promise<void>,
  ): Promise<Pick<FollowedAnswer, 'leaseMs'> | 'full'> {
    const askedAt = performance.now();
    const following = await this.#follow();
    const edge = this.#asks(asked, askedAt);
    if (!edge) return 'full';
    this.#hasTaken(edge, taken() ?? NEVER, askedAt);
    const { told, lease } = this.#promise(edge, following);
    this.#tell(following);
    try {
      await published(told.times);
    } catch (error) {
      lease.until = 0;
      throw error;
    }
    this.#hasTaken(edge, taken() ?? NEVER, askedAt);
    return { leaseMs: grantedMs(lease, askedAt) };
  }

  /** Accepts that an edge has stopped answering: no change waits for it. */
  leave(asked: Pick<EdgeAsking, 'id' | 'key'>): void {
    const edge = this.#edges.get(keyOf(asked));
    if (!edge) return;
    this.#edges.delete(keyOf(asked));
    edge.leases = [];
    this.#taken.wake();
  }

  /** The last notification; later ones will all arrive. */
  async notified(): Promise<Knowledge | undefined> {
    await this.#follow();
    const revision = this.#options.repository.revision();
    return revision === undefined ? undefined : { times: this.#times, revision };
  }

  /** Calls the listener for each change from now on. @returns a function that unsubscribes */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The changes after a position; see `FEED`. @param taken the state known at that position */
  changesAfter(cursor: string, taken: Knowledge | undefined): Promise<FeedChanges | undefined> {
    return this.#options.repository.port(FEED).since(cursor, MAX_CHANGES, this.#changedByHand(taken));
  }

  /**
   * All keys, in pages that are read one after the other, with the changes made during that.
   * @returns the position to continue from; undefined if there were too many changes
   */
  async *pages(): AsyncGenerator<Pick<FeedChanges, 'rows' | 'gone'>, string | undefined> {
    const feed = this.#options.repository.port(FEED);
    let cursor = await feed.head();
    for await (const rows of feed.pages(PAGE_KEYS)) {
      // The store remembers a limited number of changes, so they are sent before it forgets them.
      yield { rows, gone: [] };
      for (let changes: FeedChanges | undefined; !changes || changes.hasMore;) {
        changes = await feed.since(cursor, MAX_CHANGES);
        if (!changes) return undefined;
        cursor = changes.cursor;
        yield changes;
      }
    }
    return cursor;
  }

  /**
   * All keys, as lines of the feed, with the changes made during that. The last line has the position to continue from;
   * without it, there were too many changes.
   * @throws KeysError STORE_…
   */
  async *snapshot(): AsyncGenerator<string> {
    const pages = this.pages();
    let page = await pages.next();
    for (; !page.done; page = await pages.next()) yield changeLines(page.value);
    if (page.value !== undefined) yield lastLine({ cursor: page.value, leaseMs: 0 });
  }

  /** Counts an edge that loads all keys. @returns a function for its end; undefined if too many are loading */
  beginLoading(): (() => void) | undefined {
    if (this.#loading >= MAX_LOADING) return undefined;
    this.#loading += 1;
    return () => void (this.#loading -= 1);
  }

  /** The edges of all processes of the store, by name. @throws KeysError STORE_… */
  async all(): Promise<ListedEdge[]> {
    const now = this.#options.clock();
    const edges = await this.#options.repository.port(FEED).edges();
    return edges.map((edge) => listedEdge(edge, now));
  }

  /** The edges of this process, while they are listed. */
  list(): KnownEdge[] {
    const now = performance.now();
    return Array.from(this.#edges.values(), (edge) => ({
      id: edge.id,
      name: edge.name,
      key: edge.key,
      address: edge.address,
      leaseMs: leaseMsOf(edge, now),
      restMs: Math.max(edge.restsUntil - now, 0),
      // A resting edge with changes left would have been answered.
      lagMs: edge.restsUntil > now && edge.taken.times >= this.#times ? 0 : now - edge.takenAt,
      seenMs: now - edge.askedAt,
    })).filter(({ seenMs }) => seenMs < LISTED_MS);
  }

  /** How many changes have waited for edges, and their total time. */
  get waited(): { readonly count: number; readonly seconds: number } {
    return this.#waited;
  }

  async changed(): Promise<void> {
    const times = (this.#times += 1);
    this.#changed.wake();
    for (const listener of this.#listeners) listener();
    const began = performance.now();
    const isSure = this.#options.repository.revision() !== undefined;
    if (!(await this.#untilKnown(isSure ? times : Number.POSITIVE_INFINITY))) return;
    this.#waited.count += 1;
    this.#waited.seconds += (performance.now() - began) / 1000;
  }

  async ended(): Promise<void> {
    await this.#untilKnown(Number.POSITIVE_INFINITY);
  }

  /** Stops following, together with the store. */
  async #close(): Promise<void> {
    clearTimeout(this.#telling);
    await (await this.#following?.catch(() => undefined))?.stop();
  }

  #follow(): Promise<Following> {
    this.#following ??= this.#options.repository.follow(this).catch((error: unknown) => {
      this.#following = undefined;
      throw error;
    });
    return this.#following;
  }

  /** Resolves once no edge can answer from fewer notifications. @returns true if it had to wait */
  async #untilKnown(times: number): Promise<boolean> {
    let hasWaited = false;
    // Waits for one edge after the other, so that not all are checked again whenever one of a thousand makes progress.
    for (const edge of this.#edges.values()) {
      const began = performance.now();
      for (let waits = false; ; waits = true) {
        const now = performance.now();
        let until = 0;
        if (edge.taken.times < times)
          for (const lease of edge.leases) if (lease.times < times) until = Math.max(until, lease.until);
        if (until <= now) {
          const hasLeft = this.#edges.get(keyOf(edge)) !== edge;
          const isLate = now - began >= SLOW_MS || (edge.taken.times < times && !hasLeft);
          if (waits && isLate && times < Number.POSITIVE_INFINITY) this.#hasDelayed(edge, began);
          break;
        }
        hasWaited = true;
        await this.#taken.wait(until - now + 1);
      }
    }
    return hasWaited;
  }

  /** Records that a change was delayed since a time. Changes delayed together count once. */
  #hasDelayed({ key: { id } }: Edge, began: number): void {
    const known = this.#delays.get(id);
    if (known && began < known.at) return;
    const at = performance.now();
    for (const [each, delays] of this.#delays) if (delays.at < at - DELAYS_MS) this.#delays.delete(each);
    this.#delays.set(id, { count: (this.#delays.get(id)?.count ?? 0) + 1, at });
  }

  /**
   * The longest lease of an edge: from the second change on that edges of its key have delayed, half of it each time.
   * This bounds the delay of changes, however many such edges there are.
   */
  #mostLeaseMs({ key: { id }, leaseMs }: Edge, now: number): number {
    const { count, at } = this.#delays.get(id) ?? { count: 0, at: now };
    if (count < 2 || at < now - DELAYS_MS) return leaseMs;
    return Math.max(Math.min(leaseMs, STORE_LEASE_MS) / 2 ** (count - 1), EDGE_FORMS.leaseMs.least);
  }

  /**
   * Records a request of an edge, which confirms what it has taken. The map starts with the edges whose last request is
   * oldest.
   */
  #asks(asked: EdgeAsking, askedAt: number): Edge | undefined {
    const key = keyOf(asked);
    const known = this.#edges.get(key);
    if (!known && !this.#hasRoom(askedAt, asked.key.id)) return undefined;
    const leases = known?.leases.filter(({ until }) => until > askedAt) ?? [];
    const state = known ?? { taken: NEVER, takenAt: askedAt, sent: undefined, current: undefined };
    const restsUntil = asked.restMs ? askedAt + asked.restMs + TELL_MS : 0;
    const edge = Object.assign(state, asked, { leases, askedAt, restsUntil });
    this.#edges.delete(key);
    this.#edges.set(key, edge);
    return edge;
  }

  /** Until when an edge is held: together with others of the same lease, so that they are answered in one turn. */
  #turnOf({ askedAt, leaseMs }: Edge, holdMs: number): number {
    const [usualMs, end] = [leaseMs * HOLD_PART, askedAt + holdMs];
    const slackMs = usualMs / 50;
    if (holdMs < usualMs - slackMs) return end;
    const interval = usualMs / Math.ceil(this.#edges.size / EDGES_TOGETHER);
    return Math.floor((end + slackMs) / interval) * interval;
  }

  /**
   * Promises an edge a lease for the known state. A later change waits until the edge has taken it or the lease ends.
   */
  #promise(edge: Edge, following: Following): { told: Knowledge; lease: Lease } {
    // Comes first: a change committed after this, and not seen below, waits for this process.
    const [leasedUntil, now] = [following.leasedUntil(), performance.now()];
    const revision = this.#options.repository.revision();
    if (revision === undefined || leasedUntil <= now || this.#edges.get(keyOf(edge)) !== edge) throw notSure();
    const told = { times: this.#times, revision };
    const lease = { times: told.times, until: Math.min(now + this.#mostLeaseMs(edge, now), leasedUntil) };
    edge.leases.push(lease);
    return { told, lease };
  }

  /** Records the state that an edge has taken. */
  #hasTaken(edge: Edge, told: Knowledge, at: number): void {
    if (told.times < edge.taken.times) return;
    [edge.taken, edge.takenAt] = [told, at];
    // Changes that it has taken wait for nothing, so its earlier leases merge into one.
    const past = edge.leases.filter(({ times }) => times <= told.times).map(({ until }) => until);
    edge.leases = edge.leases.filter(({ times, until }) => times > told.times && until > at);
    edge.leases.unshift({ times: told.times, until: Math.max(...past, 0) });
    this.#taken.wake();
  }

  /** The changes after a position; undefined if they are not known. */
  async #changesAfter(after: string, edge: Edge, told: Knowledge): Promise<FeedChanges | undefined> {
    const { current } = edge;
    const now = performance.now();
    if (current?.cursor === after && current.times === told.times && current.at >= now - CURRENT_MS)
      return { cursor: after, rows: [], gone: [], hasMore: false };
    const changes = await this.changesAfter(after, edge.taken);
    if (changes?.cursor === after) edge.current = { cursor: after, times: told.times, at: now };
    return changes;
  }

  /**
   * The keys changed by hand in the database, without an entry in the audit log, since the edge's state. Unknown while
   * notifications are lost.
   */
  #changedByHand({ revision }: Pick<Knowledge, 'revision'> = NEVER): readonly string[] {
    const { repository } = this.#options;
    const changed = repository.kind === 'sqlite' || revision < 0 ? [] : repository.keysChangedSince(revision);
    return changed === 'any' ? [] : changed;
  }

  /** Makes room for another edge of a key, if possible, by forgetting edges without a lease. */
  #hasRoom(now: number, keyId: string): boolean {
    const others = [...this.#edges.values()].filter(({ key }) => key.id === keyId);
    if (others.length >= MAX_EDGES_OF_KEY) {
      const forgotten = others.find((edge) => leaseMsOf(edge, now) === 0);
      if (!forgotten) return false;
      this.#edges.delete(keyOf(forgotten));
    }
    for (const [key, edge] of this.#edges) {
      if (edge.askedAt >= now - LISTED_MS && this.#edges.size < MAX_EDGES) return true;
      if (leaseMsOf(edge, now) > 0) return false;
      this.#edges.delete(key);
    }
    return true;
  }

  /** Publishes the edges of this process for other processes' lists, now or soon. */
  #tell(following: Following): void {
    if (this.#telling) return;
    const tell = async () => {
      this.#toldAt = performance.now();
      await following.note(JSON.stringify(this.list())).catch(() => {
        // The next call tries again.
      });
      this.#telling = undefined;
    };
    this.#telling = setTimeout(tell, Math.max(this.#toldAt + TELL_MS - performance.now(), 0)).unref();
  }
}

/** The identity of an edge includes its key, so that no other key can speak for it. */
function keyOf({ id, key }: Pick<EdgeAsking, 'id' | 'key'>): string {
  return `${key.id} ${id}`;
}

/** The rest of its leases, in milliseconds. */
function leaseMsOf({ leases }: Edge, now: number): number {
  return Math.max(...leases.map(({ until }) => until - now), 0);
}

/**
 * The lease as sent to an edge, in milliseconds since it sent its request. That was before the request arrived, and the
 * holding time here is subtracted, so the edge stops first, whatever the latency.
 */
function grantedMs({ until }: Lease, receivedAt: number): number {
  return Math.max(Math.floor(until - receivedAt) - DRIFT_MS, 0);
}

function notSure(): KeysError {
  return new KeysError('STORE_UNAVAILABLE', 'The server may not know of all changes yet. Try again.');
}

/** The lines of an answer: changed keys, deleted keys, and the position to continue from. */
export function answerLines(answer: FollowedAnswer): string {
  return changeLines(answer) + lastLine(answer);
}

function changeLines({ rows, gone }: Pick<FeedChanges, 'rows' | 'gone'>): string {
  return [...rows.map((row) => `+${row}\n`), ...gone.map((id) => `-${JSON.stringify([id])}\n`)].join('');
}

function lastLine({ cursor, leaseMs }: Pick<FollowedAnswer, 'cursor' | 'leaseMs'>): string {
  return `=${JSON.stringify([cursor, leaseMs])}\n`;
}
