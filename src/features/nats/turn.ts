import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { JetStreamClient, JetStreamManager, PubAck, StreamInfo } from '@nats-io/jetstream';
import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node';
import type { FeedByNats } from './settings.ts';
import { KeysError, Wakeup } from '../../keys/basics/index.ts';
import { EDGE_FORMS, type Edges, type Knowledge } from '../edges/index.ts';
import {
  CURSOR_HEADER,
  isNamed,
  namesOf,
  type Nats,
  type NatsAnswer,
  OPERATION_HEADER,
  positionOf,
  sequenceIn,
} from './connection.ts';

/** The last known state of a bucket: a restored one has fewer entries. */
export interface SeenBucket {
  created: string;
  sequence: number;
}

/** Makes a message handler that checks the sender's key before it computes the answer. */
export type Answering = (
  work: (asked: Readonly<Record<string, unknown>>, key: { id: string; name: string }) => Promise<unknown>,
) => (error: Error | null, message: Msg) => void;

interface TurnOptions {
  readonly nats: Nats;
  readonly connection: NatsConnection;
  readonly settings: FeedByNats;
  readonly edges: Edges;
  readonly seen: SeenBucket;
  /** See `PublisherOptions`. */
  readonly clearMs?: number | undefined;
  readonly answering: Answering;
}

/** Time-out of an answer, in milliseconds. */
const SILENCE_MS = 2000;
/** Maximum number of unacknowledged entries. */
const MAX_PENDING = 500;
/** Number of entries whose notifications are remembered. */
const MAX_POINTS = 1000;
/**
 * How long entries of deleted keys are kept, in milliseconds, and the fraction of that after which this process
 * confirms that it still publishes. Both, and the longest lease, end before the entries are cleared.
 */
const [CLEAR_MS, NOTE_PART] = [3_600_000, 1 / 60];
/** The dot distinguishes it from keys. Its value is the position up to which entries of deleted keys are cleared. */
const NOTE = 'feed.note';
/** The maximum size of an entry in a bucket, in bytes. */
const MAX_ENTRY_BYTES = 1024 * 1024;
/** The number of replicas of a bucket in a cluster. */
const REPLICAS = 3;

/** A period in which this process publishes. */
export class Turn {
  readonly #options: TurnOptions;
  readonly #id = randomUUID();
  readonly #names: ReturnType<typeof namesOf>;
  readonly #manager: Promise<JetStreamManager>;
  readonly #client: JetStreamClient;
  readonly #ended = new AbortController();
  readonly #pending: Promise<PubAck>[] = [];
  /** State of the store at each entry. */
  readonly #points: { sequence: number; told: Knowledge }[] = [];
  #created = '';
  #domain: string | undefined;
  /** The last entry, even if it is not acknowledged yet. */
  #sequence = 0;
  #notedAt = 0;
  /** A change happened, or a point was requested, since the last pass began. */
  #isWanted = false;
  readonly #wanted = new Wakeup();
  /** Woken by each point. */
  readonly #pointed = new Wakeup();
  /**
   * Edges behind this position load all keys, because entries of deleted keys are cleared up to there when this age
   * ends.
   */
  #cleared = 0;
  /** Entries of deleted keys are cleared up to here. */
  #purged = 0;
  /** The last entry of a deleted key. */
  #lastGone = 0;
  /** Start of the current age, and its first entry. */
  #age = { began: performance.now(), sequence: 0 };

  constructor(options: TurnOptions) {
    this.#options = options;
    this.#names = namesOf(options.settings);
    this.#client = options.nats.jetstream(options.connection);
    this.#manager = options.nats.jetstreamManager(options.connection, { checkAPI: false, timeout: SILENCE_MS });
  }

  /**
   * Publishes until it is stopped, or another process takes over.
   * @param published called once all keys are published
   * @throws Error of the library; KeysError STORE_…
   */
  async run(stopped: AbortSignal, published: () => void): Promise<void> {
    const { connection, edges } = this.#options;
    const { signal } = this.#ended;
    const end = () => this.#ended.abort();
    stopped.addEventListener('abort', end, { once: true });
    const endListening = edges.onChange(() => this.#want());
    const subscriptions: Subscription[] = [];
    try {
      // After a lost connection, the bucket may be a different one.
      void this.#endWithConnection();
      let cursor = await this.#begin();
      connection.publish(this.#names.publisher, this.#id);
      subscriptions.push(
        connection.subscribe(this.#names.publisher, {
          callback: (error, message) => {
            if (error) return;
            if (message.reply) message.respond(this.#id);
            else if (message.string() !== this.#id) end();
          },
        }),
      );
      for (let isFirst = true; !signal.aborted; isFirst = false) {
        this.#isWanted = false;
        const told = await edges.notified();
        cursor = (await this.#goOn(cursor)) ?? (await this.#publishAll());
        if (performance.now() - this.#notedAt > this.#noteMs) {
          this.#grow();
          await this.#note(cursor);
        }
        if (told) this.#point(told);
        if (isFirst) {
          subscriptions.push(connection.subscribe(this.#names.ask, { callback: this.#answerAsks() }));
          published();
        }
        if (!this.#isWanted) await this.#wanted.wait(Infinity, signal);
      }
    } finally {
      endListening();
      stopped.removeEventListener('abort', end);
      end();
      for (const subscription of subscriptions) subscription.unsubscribe();
    }
  }

  /**
   * Writes a first entry after the last one, so that entries of the previous publisher are refused.
   * @returns the cursor to continue from; undefined if unknown
   * @throws KeysError CONFIG_INVALID
   */
  async #begin(): Promise<string | undefined> {
    const manager = await this.#manager;
    const { seen } = this.#options;
    this.#domain = (await manager.getAccountInfo()).domain;
    let info = await this.#bucket(manager);
    if (info.created === seen.created && info.state.last_seq < seen.sequence) {
      // The bucket was restored from an earlier state, so its numbers would repeat.
      await manager.streams.delete(this.#names.stream);
      info = await this.#bucket(manager);
    }
    checkLimits(info);
    const last = info.state.last_seq;
    this.#created = info.created;
    this.#sequence = this.#lastGone = this.#age.sequence = last;
    const { stream, entries } = this.#names;
    const entry = last === 0 ? null : await manager.streams.getMessage(stream, { seq: last });
    const cursor = entry?.header.get(CURSOR_HEADER) || undefined;
    const note = last === 0 ? null : await manager.streams.getMessage(stream, { last_by_subj: entries + NOTE });
    this.#cleared = Number(note?.string() ?? last);
    await this.#note(cursor);
    return cursor;
  }

  async #bucket(manager: JetStreamManager): Promise<StreamInfo> {
    const { stream, entries } = this.#names;
    try {
      return await manager.streams.info(stream);
    } catch (error) {
      if (!isNamed(error, 'StreamNotFoundError')) throw error;
    }
    const { nats, connection } = this.#options;
    const isCluster = connection.info?.cluster !== undefined;
    const [major = 0, minor = 0] = (connection.info?.version ?? '').split('.').map(Number);
    return manager.streams.add({
      name: stream,
      subjects: [`${entries}>`],
      storage: nats.StorageType.File,
      discard: nats.DiscardPolicy.New,
      max_msgs_per_subject: 1,
      max_msg_size: MAX_ENTRY_BYTES,
      num_replicas: isCluster ? REPLICAS : 1,
      allow_rollup_hdrs: true,
      deny_delete: true,
      allow_direct: true,
      ...((major > 2 || minor >= 10) && { compression: nats.StoreCompression.S2 }),
    });
  }

  async #endWithConnection(): Promise<void> {
    for await (const { type } of this.#options.connection.status()) {
      if (this.#ended.signal.aborted) return;
      if (type === 'reconnect' || type === 'close') return this.#ended.abort();
    }
    return undefined;
  }

  /** Publishes changes. @returns the cursor to continue from; undefined if it is unknown */
  async #goOn(from: string | undefined): Promise<string | undefined> {
    for (let cursor = from; cursor !== undefined;) {
      const changes = await this.#options.edges.changesAfter(cursor, this.#points.at(-1)?.told);
      if (!changes) return undefined;
      const { rows, gone } = changes;
      const count = rows.length + gone.length;
      // A process that takes over in between starts again with the first one.
      const cursorAt = (index: number) => (index === count - 1 ? changes.cursor : cursor);
      for (const [index, row] of rows.entries()) await this.#put(keyOf(row), row, cursorAt(index));
      for (const [index, id] of gone.entries()) await this.#remove(nameOf(id), cursorAt(rows.length + index));
      await this.#flush();
      cursor = changes.cursor;
      if (!changes.hasMore) return cursor;
    }
    return undefined;
  }

  /**
   * Publishes all keys and the changes made in the meantime, and removes older entries.
   * @returns the cursor to continue from
   */
  async #publishAll(): Promise<string> {
    const before = this.#sequence;
    for (;;) {
      const pages = this.#options.edges.pages();
      let page = await pages.next();
      for (; !page.done; page = await pages.next()) {
        for (const row of page.value.rows) await this.#put(keyOf(row), row, undefined);
        for (const id of page.value.gone) await this.#remove(nameOf(id), undefined);
        await this.#flush();
      }
      const cursor = page.value;
      if (cursor === undefined) continue;
      for await (const { name, isGone } of this.#keysBetween(0, before))
        if (!isGone) await this.#remove(name, undefined);
      await this.#note(cursor);
      return cursor;
    }
  }

  /**
   * Ends an age. The entry of a deleted key is kept for the age in which it was made and for the next one, in which
   * edges take it. In the third, edges that are still behind must load all keys. It is cleared once none of them has a
   * lease.
   */
  #grow(): void {
    const { clearMs = CLEAR_MS } = this.#options;
    const now = performance.now();
    if (now - this.#age.began < clearMs) return;
    void this.#clear(this.#purged, this.#cleared).catch(() => {
      // The next age tries again.
    });
    if (this.#lastGone > this.#cleared) this.#cleared = this.#age.sequence;
    this.#age = { began: now, sequence: this.#sequence };
  }

  async #clear(first: number, last: number): Promise<void> {
    const { stream, entries } = this.#names;
    const { streams } = await this.#manager;
    for await (const { name, isGone } of this.#keysBetween(first, last)) {
      if (this.#ended.signal.aborted) return;
      if (isGone) await streams.purge(stream, { filter: entries + name, seq: last + 1 });
    }
    this.#purged = last;
  }

  /** The names of keys with entries after one number and up to another. */
  async *#keysBetween(first: number, last: number): AsyncGenerator<{ name: string; isGone: boolean }> {
    if (last <= first) return;
    const { DeliverPolicy } = this.#options.nats;
    const consumer = await this.#client.consumers.get(this.#names.stream, {
      headers_only: true,
      deliver_policy: DeliverPolicy.StartSequence,
      opt_start_seq: first + 1,
    });
    const messages = await consumer.consume();
    try {
      for await (const message of messages) {
        if (message.seq > last) return;
        const name = message.subject.slice(this.#names.entries.length);
        if (!name.includes('.')) yield { name, isGone: Boolean(message.headers?.get(OPERATION_HEADER)) };
        if (message.info.pending === 0) return;
      }
    } finally {
      await messages.close();
    }
  }

  async #note(cursor: string | undefined): Promise<void> {
    const notedAt = performance.now();
    await this.#put(NOTE, `${this.#cleared}`, cursor);
    await this.#flush();
    this.#notedAt = notedAt;
  }

  async #remove(name: string, cursor: string | undefined): Promise<void> {
    await this.#put(name, '', cursor, 'DEL');
    this.#lastGone = this.#sequence;
  }

  /** Publishes an entry after the last one. Resolves once there is room for the next. */
  async #put(name: string, text: string, cursor: string | undefined, operation?: 'DEL'): Promise<void> {
    this.#ended.signal.throwIfAborted();
    const headers = this.#options.nats.headers();
    if (cursor !== undefined) headers.set(CURSOR_HEADER, cursor);
    if (operation) headers.set(OPERATION_HEADER, operation);
    const expect = { lastSequence: this.#sequence };
    const acknowledged = this.#client.publish(this.#names.entries + name, text, {
      headers,
      expect,
      timeout: SILENCE_MS,
    });
    // Waiting callers handle the error.
    acknowledged.catch(() => {});
    this.#sequence += 1;
    if (this.#pending.push(acknowledged) >= MAX_PENDING) await this.#pending.shift();
  }

  async #flush(): Promise<void> {
    for (const acknowledged of this.#pending.splice(0)) await acknowledged;
    Object.assign(this.#options.seen, { created: this.#created, sequence: this.#sequence });
  }

  get #noteMs(): number {
    const { clearMs = CLEAR_MS } = this.#options;
    return clearMs * NOTE_PART;
  }

  #point(told: Knowledge): void {
    this.#points.push({ sequence: this.#sequence, told });
    if (this.#points.length > MAX_POINTS) this.#points.shift();
    this.#pointed.wake();
  }

  /** Requests that pending changes are published. */
  #want(): void {
    this.#isWanted = true;
    this.#wanted.wake();
  }

  /** Resolves once a number of notifications is published, and it is certain that no other process cleared anything. */
  async #publishedTo(times: number): Promise<void> {
    const noted = performance.now() - this.#noteMs;
    while ((this.#points.at(-1)?.told.times ?? -1) < times || this.#notedAt < noted) {
      this.#ended.signal.throwIfAborted();
      this.#want();
      await this.#pointed.wait(Infinity, this.#ended.signal);
    }
  }

  #answerAsks() {
    const { edges, answering } = this.#options;
    return answering(async (asked, key): Promise<NatsAnswer | object> => {
      const { edge: id, name, after, known, leaseMs, restMs, leaves } = asked;
      const { least, most } = EDGE_FORMS.leaseMs;
      const isWellFormed =
        typeof id === 'string' && EDGE_FORMS.id.test(id) && typeof name === 'string' && EDGE_FORMS.name.test(name);
      if (leaves === true && isWellFormed) {
        edges.leave({ id, key });
        return {};
      }
      const hasPositions = typeof after === 'string' && typeof known === 'string';
      if (!isWellFormed || !hasPositions || typeof leaseMs !== 'number' || typeof restMs !== 'number')
        throw new KeysError('OPTION_INVALID', 'An edge must say its id, its name, two positions, a lease and a rest.');
      if (leaseMs === 0) {
        // The edge loads all keys.
        const told = await edges.notified();
        if (told) await this.#publishedTo(told.times);
        return { leaseMs, position: positionOf(this.#created, this.#sequence), domain: this.#domain };
      }
      if (!(leaseMs >= least && leaseMs <= most))
        throw new KeysError('OPTION_INVALID', `A lease is from ${least} to ${most} milliseconds.`);
      const [taken, from = -1] = [sequenceIn(after, this.#created), sequenceIn(known, this.#created)];
      if (taken === undefined || taken > this.#sequence || from < this.#cleared)
        throw new KeysError('NOT_FOUND', 'This position is unknown: load all keys.');
      const asking = { id, name, key, address: undefined, leaseMs, restMs: Math.min(restMs, EDGE_FORMS.mostRestMs) };
      // An edge can receive an entry before this process receives its acknowledgement.
      const knows = () => this.#points.findLast(({ sequence }) => sequence <= taken)?.told;
      const given = await edges.renew(asking, knows, (times) => this.#publishedTo(times));
      if (given === 'full') throw new KeysError('SERVER_FAILED', 'Too many edges follow this origin.');
      return { ...given, position: positionOf(this.#created, this.#points.at(-1)!.sequence) };
    });
  }
}

/** Refuses a bucket whose settings, made or changed by others, would drop keys. @throws KeysError CONFIG_INVALID */
function checkLimits({ config }: StreamInfo): void {
  const limits = (['max_age', 'max_bytes', 'max_msgs'] as const).filter((name) => config[name] > 0);
  if (config.max_msgs_per_subject === 1 && limits.length === 0) return;
  throw new KeysError(
    'CONFIG_INVALID',
    `The stream ${config.name} would drop keys. Set one message per subject, and remove ` +
      `${limits.join(' and ') || 'other limits'}, or delete the stream: it is created again.`,
  );
}

/** Checks whether another process publishes and still answers. */
export async function isPublished(connection: NatsConnection, publisher: string): Promise<boolean> {
  try {
    await connection.request(publisher, '', { timeout: SILENCE_MS });
    return true;
  } catch (error) {
    if (isNamed(error, 'NoResponders', 'TimeoutError')) return false;
    throw error;
  }
}

/** Resolves after some time, or when aborted. */
export async function pause(durationMs: number, signal: AbortSignal): Promise<void> {
  await delay(durationMs, undefined, { signal, ref: false }).catch(() => {});
}

function nameOf(id: string): string {
  return Buffer.from(id).toString('base64url');
}

/** The entry name for a row, which starts with the key's id. */
function keyOf(row: string): string {
  const [, id = '""'] = /^\[\s*("(?:[^"\\]|\\.)*")/.exec(row) ?? [];
  return nameOf(JSON.parse(id) as string);
}
