import { KeysError, UUID, Wakeup } from '../basics/index.ts';
import {
  FEED,
  type FeedChanges,
  type Follower,
  type Following,
  type KeyRepository,
  type KnownEdge,
  LISTED_MS,
  STORE_LEASE_MS,
  TELL_MS,
} from '../repository/index.ts';

/** An edge that asks. */
export interface EdgeAsking extends Pick<KnownEdge, 'id' | 'name' | 'key'> {
  readonly address: string | undefined;
  /** For how long it wants to answer without being told anything, in milliseconds. */
  readonly leaseMs: number;
  /**
   * For how long it then only waits to be told of changes, in milliseconds, as nobody asks it for keys: it needs no
   * lease until somebody does. Undefined or 0 where somebody does.
   */
  readonly restMs?: number | undefined;
}

/** What an edge asks: it has taken all changes up to a position, and wants to know of those after it. */
export interface EdgePoll extends EdgeAsking {
  /** See `FeedChanges.cursor`. */
  readonly after: string;
  /** How long it waits for an answer without changes: less than it usually would where the way is long. */
  readonly holdMs?: number | undefined;
}

/** What an edge is told, and for how long it may answer by that, in milliseconds since it asked. */
export interface FollowedAnswer extends FeedChanges {
  /** 0 while more follows. */
  readonly leaseMs: number;
}

/** An edge as it is listed. */
export interface ListedEdge extends Omit<KnownEdge, 'restMs' | 'seenMs'> {
  /** Whether it needs no lease, because nobody asks it for keys. */
  readonly isResting: boolean;
  /** When it asked for something, in milliseconds since 1970. */
  readonly lastAskedAt: number;
}

/** What `Edges` needs from outside. */
interface EdgesOptions {
  repository: KeyRepository;
  /** Milliseconds since 1970. */
  clock: () => number;
}

/** What an edge knows: of how many notifications of changes, and `KeyRepository.revision`. */
export interface Knowledge {
  readonly times: number;
  readonly revision: number;
}

/** A promise to an edge: it may answer until a time of `performance.now`, by so many notifications. */
interface Lease {
  readonly times: number;
  until: number;
}

interface Edge extends EdgeAsking {
  leases: Lease[];
  /** What it is known to have taken. */
  taken: Knowledge;
  takenAt: number;
  askedAt: number;
  /** Until when it rests. */
  restsUntil: number;
  /** The last answer: when it asks from there, it has taken that. */
  sent: { cursor: string; told: Knowledge } | undefined;
  /** Where nothing came after a position, and when that was found out. */
  current: { cursor: string; times: number; at: number } | undefined;
}

/**
 * What an edge says of itself: a UUID, a name, and for how long it may ask to answer by itself and to rest, in
 * milliseconds.
 */
export const EDGE_FORMS = {
  id: UUID,
  name: /^[^\p{C}]{1,200}$/u,
  leaseMs: { least: 100, most: 60_000 },
  mostRestMs: 60_000,
} as const;
/** For how many limits it may ask for leases at once. */
export const MAX_FEED_LEASES = 100;
const NEVER: Knowledge = { times: -1, revision: -1 };
/** By how much less than a lease an edge may answer: two clocks do not go at quite the same rate, in milliseconds. */
const DRIFT_MS = 2;
/** For what part of its lease an edge waits for an answer that has no changes. */
const HOLD_PART = 1 / 2;
/** So many edges that nothing has changed for are answered together: to wake takes longer than to answer most. */
const EDGES_TOGETHER = 64;
/** By how much a timer may be early, in milliseconds. */
const EARLY_MS = 1;
/** How many keys an answer tells of, and how many a page of all keys has. */
const [MAX_CHANGES, PAGE_KEYS] = [1000, 500];
/** How long it is relied on that a position is the last one while no key changes: the store forgets older ones. */
const CURRENT_MS = 5000;
/** How many edges are remembered, of which as long as they are listed, and how many of one key. */
const [MAX_EDGES, MAX_EDGES_OF_KEY] = [10_000, 1000];
/** A change that waits for so long for the edges of a key is one that they delay, in milliseconds. */
const SLOW_MS = 500;
/** For how long it is remembered that the edges of a key have delayed changes, in milliseconds. */
const DELAYS_MS = 600_000;
/** How many edges may load all keys at once. */
const MAX_LOADING = 4;

/**
 * Tells edges, which answer without a store, of each change, and waits for them: each has a lease within which it may
 * answer. It ends before this process takes it to have ended, as it counts from when the edge has asked.
 */
export class Edges implements Follower {
  readonly #options: EdgesOptions;
  readonly #edges = new Map<string, Edge>();
  /** How many changes the edges of a key have delayed, by its id, and when they did last. */
  readonly #delays = new Map<string, { count: number; at: number }>();
  readonly #listeners = new Set<() => void>();
  #following: Promise<Following> | undefined;
  /** With each change, and each time that an edge has taken one. */
  readonly #changed = new Wakeup();
  readonly #taken = new Wakeup();
  #loading = 0;
  /** How many notifications of changes it has received. A key that is created is one, too, and changes no revision. */
  #times = 0;
  #toldAt = Number.NEGATIVE_INFINITY;
  #telling: NodeJS.Timeout | undefined;
  readonly #waited = { count: 0, seconds: 0 };

  constructor(options: EdgesOptions) {
    this.#options = options;
  }

  /**
   * Answers an edge: at once if there are changes, or if it may not answer now, otherwise within a part of its lease.
   * @param signal aborted once it waits no more, or the server stops
   * @returns `gone` where the position is not known: it must load all keys; `full` where too many edges ask
   * @throws KeysError STORE_UNAVAILABLE while it is not sure that all changes are known, STORE_…
   */
  async poll(asked: EdgePoll, signal: AbortSignal): Promise<FollowedAnswer | 'gone' | 'full'> {
    const { after } = asked;
    const askedAt = performance.now();
    const following = await this.#follow();
    const edge = this.#asks(asked, askedAt);
    if (!edge) return 'full';
    if (edge.sent?.cursor === after) this.#hasTaken(edge, edge.sent.told, askedAt);
    // A lease may be shorter than it asks for.
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
      // Who is gone takes none. Over a rest, the clocks of both may have gone too differently to count one from its
      // beginning, and one that is not renewed would only be waited for.
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
   * Gives a lease to an edge that is told of changes in another way, once it can have all that is known here.
   * @param taken what it is known to have taken, which may turn out to be more while it waits
   * @param published resolves once it can have all of so many notifications, and rejects if it may not
   * @returns for how many milliseconds since it has asked it may answer, once it has taken that; `full` as `poll`
   * @throws KeysError STORE_UNAVAILABLE as `poll`; what `published` rejects with
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

  /** Takes it from an edge that it lets no key pass any more: no change waits for it. */
  leave(asked: Pick<EdgeAsking, 'id' | 'key'>): void {
    const edge = this.#edges.get(keyOf(asked));
    if (!edge) return;
    this.#edges.delete(keyOf(asked));
    edge.leases = [];
    this.#taken.wake();
  }

  /** Of what this process was notified. It is notified of all from then on. */
  async notified(): Promise<Knowledge | undefined> {
    await this.#follow();
    const revision = this.#options.repository.revision();
    return revision === undefined ? undefined : { times: this.#times, revision };
  }

  /** Is called with each change from then on. @returns ends that */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** What was changed after a position; see `FEED`. @param taken what was known at that position */
  changesAfter(cursor: string, taken: Knowledge | undefined): Promise<FeedChanges | undefined> {
    return this.#options.repository.port(FEED).since(cursor, MAX_CHANGES, this.#changedByHand(taken));
  }

  /**
   * All keys, in pages that are read one after the other, with what is changed meanwhile.
   * @returns where to go on; undefined if too much was changed meanwhile
   */
  async *pages(): AsyncGenerator<Pick<FeedChanges, 'rows' | 'gone'>, string | undefined> {
    const feed = this.#options.repository.port(FEED);
    let cursor = await feed.head();
    for await (const rows of feed.pages(PAGE_KEYS)) {
      // The store remembers a number of changes alone: they are told before it forgets them.
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
   * All keys, as lines of the feed, with what is changed meanwhile: the last line says where to go on. Where that is
   * missing, too much was changed meanwhile.
   * @throws KeysError STORE_…
   */
  async *snapshot(): AsyncGenerator<string> {
    const pages = this.pages();
    let page = await pages.next();
    for (; !page.done; page = await pages.next()) yield changeLines(page.value);
    if (page.value !== undefined) yield lastLine({ cursor: page.value, leaseMs: 0 });
  }

  /** Counts an edge that loads all keys. @returns ends that; undefined where no more may do so now */
  beginLoading(): (() => void) | undefined {
    if (this.#loading >= MAX_LOADING) return undefined;
    this.#loading += 1;
    return () => void (this.#loading -= 1);
  }

  /** The edges that follow the store, whichever process they follow, by their names. @throws KeysError STORE_… */
  async all(): Promise<ListedEdge[]> {
    const now = this.#options.clock();
    const edges = await this.#options.repository.port(FEED).edges();
    return edges.map(({ seenMs, leaseMs, restMs, lagMs, ...edge }) => ({
      ...edge,
      leaseMs: Math.round(leaseMs),
      isResting: restMs > 0,
      lagMs: Math.round(lagMs),
      lastAskedAt: Math.round(now - seenMs),
    }));
  }

  /** The edges that follow this process, as long as they are listed. */
  list(): KnownEdge[] {
    const now = performance.now();
    return Array.from(this.#edges.values(), (edge) => ({
      id: edge.id,
      name: edge.name,
      key: edge.key,
      address: edge.address,
      leaseMs: leaseMsOf(edge, now),
      restMs: Math.max(edge.restsUntil - now, 0),
      // One that rests would have been told of more.
      lagMs: edge.restsUntil > now && edge.taken.times >= this.#times ? 0 : now - edge.takenAt,
      seenMs: now - edge.askedAt,
    })).filter(({ seenMs }) => seenMs < LISTED_MS);
  }

  /** How many changes have waited for edges, and for how long in all. */
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

  /** Ends it, with the store. */
  async close(): Promise<void> {
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

  /** Resolves once no edge may answer by fewer notifications. @returns whether that took waiting */
  async #untilKnown(times: number): Promise<boolean> {
    let hasWaited = false;
    // One after the other: each time that one of a thousand has taken something, it is not looked at all of them.
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

  /** Notes that a change was delayed, from a time on. Those that were delayed together are one. */
  #hasDelayed({ key: { id } }: Edge, began: number): void {
    const known = this.#delays.get(id);
    if (known && began < known.at) return;
    const at = performance.now();
    for (const [each, delays] of this.#delays) if (delays.at < at - DELAYS_MS) this.#delays.delete(each);
    this.#delays.set(id, { count: (this.#delays.get(id)?.count ?? 0) + 1, at });
  }

  /**
   * The lease that an edge can have: from the second change on that was delayed by edges of its key, half as much each
   * time. So however many there are, and whatever they do, changes do not wait for long for them.
   */
  #mostLeaseMs({ key: { id }, leaseMs }: Edge, now: number): number {
    const { count, at } = this.#delays.get(id) ?? { count: 0, at: now };
    if (count < 2 || at < now - DELAYS_MS) return leaseMs;
    return Math.max(Math.min(leaseMs, STORE_LEASE_MS) / 2 ** (count - 1), EDGE_FORMS.leaseMs.least);
  }

  /** Notes that an edge asks, by which it says what it has taken. The map has those first that have not for longest. */
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

  /** Until when an edge is held: with others that have asked for the same lease, where it need not ask more often. */
  #turnOf({ askedAt, leaseMs }: Edge, holdMs: number): number {
    const [usualMs, end] = [leaseMs * HOLD_PART, askedAt + holdMs];
    const slackMs = usualMs / 50;
    if (holdMs < usualMs - slackMs) return end;
    const interval = usualMs / Math.ceil(this.#edges.size / EDGES_TOGETHER);
    return Math.floor((end + slackMs) / interval) * interval;
  }

  /** Promises an edge that it may answer by what is known: what is changed while it is told waits for that. */
  #promise(edge: Edge, following: Following): { told: Knowledge; lease: Lease } {
    // First of all: what is committed after that, and is not seen below, waits for this process.
    const [leasedUntil, now] = [following.leasedUntil(), performance.now()];
    const revision = this.#options.repository.revision();
    if (revision === undefined || leasedUntil <= now || this.#edges.get(keyOf(edge)) !== edge) throw notSure();
    const told = { times: this.#times, revision };
    const lease = { times: told.times, until: Math.min(now + this.#mostLeaseMs(edge, now), leasedUntil) };
    edge.leases.push(lease);
    return { told, lease };
  }

  /** Notes what an edge has taken. */
  #hasTaken(edge: Edge, told: Knowledge, at: number): void {
    if (told.times < edge.taken.times) return;
    [edge.taken, edge.takenAt] = [told, at];
    // No change waits that it has taken: what it was promised before is one lease.
    const past = edge.leases.filter(({ times }) => times <= told.times).map(({ until }) => until);
    edge.leases = edge.leases.filter(({ times, until }) => times > told.times && until > at);
    edge.leases.unshift({ times: told.times, until: Math.max(...past, 0) });
    this.#taken.wake();
  }

  /** What was changed after a position; undefined where that is not known. */
  async #changesAfter(after: string, edge: Edge, told: Knowledge): Promise<FeedChanges | undefined> {
    const { current } = edge;
    const now = performance.now();
    if (current?.cursor === after && current.times === told.times && current.at >= now - CURRENT_MS)
      return { cursor: after, rows: [], gone: [], hasMore: false };
    const changes = await this.#options.repository
      .port(FEED)
      .since(after, MAX_CHANGES, this.#changedByHand(edge.taken));
    if (changes?.cursor === after) edge.current = { cursor: after, times: told.times, at: now };
    return changes;
  }

  /**
   * The keys that others have changed in a database by hand, which its audit log does not know of, since an edge has
   * taken all. While notifications are lost, nobody knows.
   */
  #changedByHand({ revision }: Pick<Knowledge, 'revision'> = NEVER): readonly string[] {
    const { repository } = this.#options;
    const changed = repository.kind === 'sqlite' || revision < 0 ? [] : repository.keysChangedSince(revision);
    return changed === 'any' ? [] : changed;
  }

  /** Makes room for one more of a key, if that is so: those that may not answer are forgotten. */
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

  /** Lets others list the edges of this process, as they are now or soon. */
  #tell(following: Following): void {
    if (this.#telling) return;
    const tell = async () => {
      this.#toldAt = performance.now();
      await following.tell(this.list()).catch(() => {
        // The next time will do.
      });
      this.#telling = undefined;
    };
    this.#telling = setTimeout(tell, Math.max(this.#toldAt + TELL_MS - performance.now(), 0)).unref();
  }
}

/** An edge is known by its key as well: nobody with another key speaks for it. */
function keyOf({ id, key }: Pick<EdgeAsking, 'id' | 'key'>): string {
  return `${key.id} ${id}`;
}

/** For how many milliseconds it may still answer. */
function leaseMsOf({ leases }: Edge, now: number): number {
  return Math.max(...leases.map(({ until }) => until - now), 0);
}

/**
 * What an edge is told of a lease, in milliseconds since it has sent what it asked. That was before it was received,
 * and for how long it was held here is known: so an edge stops first, whatever the way takes.
 */
function grantedMs({ until }: Lease, receivedAt: number): number {
  return Math.max(Math.floor(until - receivedAt) - DRIFT_MS, 0);
}

function notSure(): KeysError {
  return new KeysError('STORE_UNAVAILABLE', 'The server is not sure that it knows of all changes. Try again.');
}

/** The lines of an answer: keys that were changed, keys that are gone, and where to go on. */
export function answerLines(answer: FollowedAnswer): string {
  return changeLines(answer) + lastLine(answer);
}

function changeLines({ rows, gone }: Pick<FeedChanges, 'rows' | 'gone'>): string {
  return [...rows.map((row) => `+${row}\n`), ...gone.map((id) => `-${JSON.stringify([id])}\n`)].join('');
}

function lastLine({ cursor, leaseMs }: Pick<FollowedAnswer, 'cursor' | 'leaseMs'>): string {
  return `=${JSON.stringify([cursor, leaseMs])}\n`;
}
