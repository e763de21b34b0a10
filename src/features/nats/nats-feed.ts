import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import type { JsMsg } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import type { FeedByNats } from './settings.ts';
import {
  type ActivityReport,
  FeedGone,
  type FeedOptions,
  type FeedSource,
  FeedToken,
  LEAVE_MS,
  REST,
  type Watching,
} from '../edge/index.ts';
import { isRecord, KeysError, printable, Wakeup } from '../../keys/basics/index.ts';
import type { LeaseGrant, LeaseRequest } from '../../limits/index.ts';
import {
  connectTo,
  failureOf,
  namesOf,
  type Nats,
  type NatsAnswer,
  type NatsAsk,
  OPERATION_HEADER,
  readCredentials,
  readMessage,
} from './connection.ts';

/** The entries of an origin, with the credentials of the edge. */
interface NatsFeedOptions extends FeedOptions {
  readonly settings: FeedByNats;
}

/** Interval for renewing a lease and time-out of an answer, as parts of the lease. */
const [ASK_PART, PATIENCE_PART] = [1 / 4, 1 / 4];
/** Time-out of other answers, and of silence while loading all keys, in milliseconds. */
const [ANSWER_MS, SILENCE_MS] = [10_000, 30_000];
const [RETRY_MS, API_MS] = [100, 2000];
/** The minimum lease: the origin's own lease can be about to expire; it then gives a longer one. */
const LEAST_MS = 400;
/** Maximum number of entries requested at a time and waiting to be taken. */
const MAX_ENTRIES = 1000;

interface Connected {
  readonly nats: Nats;
  readonly connection: NatsConnection;
}

/** The feed of an origin over NATS: its keys are the entries of a bucket, and leases are requested by messages. */
export class NatsFeed implements FeedSource {
  readonly origin: string;
  readonly #options: NatsFeedOptions;
  readonly #names: ReturnType<typeof namesOf>;
  readonly #token: FeedToken;
  readonly #id = randomUUID();
  #connected: Promise<Connected> | undefined;
  #isClosed = false;
  #domain: string | undefined;

  /** @throws KeysError CONFIG_UNAVAILABLE, CONFIG_INSECURE, CONFIG_INVALID of its files */
  constructor(options: NatsFeedOptions) {
    const { credentials } = options.settings;
    if (credentials) readCredentials(credentials.file);
    this.#options = options;
    this.#token = new FeedToken(options.token, options.log);
    this.#names = namesOf(options.settings);
    this.origin = options.settings.servers[0]!;
  }

  async *snapshot(signal: AbortSignal): AsyncIterable<Buffer> {
    const { position, domain } = await this.#ask({ after: '', known: '', leaseMs: 0, restMs: 0 }, ANSWER_MS);
    this.#domain = domain;
    const entries = await this.#entries(0, signal);
    try {
      let last = 0;
      const target = sequenceOf(position);
      while (last < target) {
        const found = await entries.next(SILENCE_MS);
        if (found.length === 0) throw this.#failure(new Error('it does not send all keys'));
        yield Buffer.from(found.map(lineOf).join(''));
        last = found.at(-1)!.seq;
      }
      // Entries of keys deleted since may have been cleared while reading.
      yield lastLine(position, 0);
    } finally {
      await entries.close();
    }
  }

  async follow(
    first: string,
    take: (lines: Buffer, askedAt: number) => Promise<string>,
    { signal, failed, resting }: Watching,
  ): Promise<never> {
    const { leaseMs } = this.#options;
    // After the last confirmed position, entries of deleted keys may be missing, so it is no place to start.
    let [known, cursor, provenAt] = [first, first, performance.now()];
    // The origin can give a shorter lease than requested.
    let givenMs = leaseMs;
    let isRoused = false;
    /** Takes entries; the time is that of the last answer. */
    const taken = async (found: readonly JsMsg[], lease = 0) => {
      const lines = Buffer.concat([Buffer.from(found.map(lineOf).join('')), lastLine(known, lease)]);
      await take(lines, provenAt);
      if (found.length > 0) cursor = withSequence(cursor, found.at(-1)!.seq);
    };
    for (;;) {
      let entries: Entries | undefined;
      /** The start of a rest, during which no keys are requested. */
      let restsSince = Infinity;
      try {
        entries = await this.#entries(sequenceOf(cursor), signal);
        for (;;) {
          const [askedAt, rest] = [performance.now(), resting()];
          const asked = { after: cursor, known, leaseMs, restMs: rest ? REST.askedMs : 0 };
          const answer = await this.#ask(asked, Math.max(givenMs * PATIENCE_PART, isRoused ? REST.patienceMs : 0));
          [known, provenAt] = [cursor, askedAt];
          givenMs = Math.max(answer.leaseMs, Math.min(leaseMs, LEAST_MS));
          const found: JsMsg[] = [];
          const target = sequenceOf(answer.position);
          const missing = () => target > (found.at(-1)?.seq ?? sequenceOf(cursor));
          while (missing()) {
            const more = await entries.next(askedAt + givenMs / 2 - performance.now());
            if (more.length === 0) throw new Error('it does not send what has changed');
            found.push(...more);
          }
          await taken(found, answer.leaseMs);
          // Report taken entries immediately, because others wait for them.
          if (found.length > 0) continue;
          const waitMs = rest ? REST.askedMs : askedAt + givenMs * ASK_PART - performance.now();
          if (rest) restsSince = performance.now();
          const changed = await entries.next(waitMs, rest);
          restsSince = Infinity;
          isRoused = rest?.aborted === true;
          if (changed.length > 0) await taken(changed);
        }
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof FeedGone) throw error;
        isRoused = performance.now() - restsSince > REST.leastMs;
        if (isRoused) continue;
        failed(this.#failure(error));
        await delay(RETRY_MS, undefined, { signal, ref: false });
      } finally {
        await entries?.close();
      }
    }
  }

  async reportActivity(report: ActivityReport): Promise<void> {
    await this.#request(this.#names.activity, { report }, ANSWER_MS);
  }

  async lease(requests: readonly LeaseRequest[]): Promise<(LeaseGrant | null)[]> {
    const { grants } = await this.#request(this.#names.leases, { requests }, ANSWER_MS);
    if (Array.isArray(grants) && grants.length === requests.length) return grants as (LeaseGrant | null)[];
    throw this.#incompatible();
  }

  async leave(): Promise<void> {
    const { name = hostname() } = this.#options;
    await this.#request(this.#names.ask, { edge: this.#id, name, leaves: true }, LEAVE_MS);
  }

  close(): void {
    this.#isClosed = true;
    void this.#connected?.then(({ connection }) => connection.close()).catch(() => {});
  }

  /** @throws FeedGone; KeysError */
  async #ask(asks: Omit<NatsAsk, 'edge' | 'name'>, patienceMs: number): Promise<NatsAnswer> {
    const { name = hostname() } = this.#options;
    const asked = { edge: this.#id, name, ...asks } satisfies NatsAsk;
    const answer = await this.#request(this.#names.ask, asked, patienceMs);
    const { position } = answer;
    const isWellFormed = typeof position === 'string' && /\.\d{1,15}$/.test(position);
    if (!isWellFormed || typeof answer['leaseMs'] !== 'number') throw this.#incompatible();
    return answer as unknown as NatsAnswer;
  }

  /** @throws FeedGone; KeysError */
  async #request(subject: string, content: object, timeout: number): Promise<Readonly<Record<string, unknown>>> {
    let answer;
    try {
      const { connection } = await this.#connection();
      const message = JSON.stringify({ ...content, token: this.#token.text });
      answer = readMessage(await connection.request(subject, message, { timeout }));
    } catch (error) {
      throw this.#failure(error);
    }
    if (!isRecord(answer.error)) return answer;
    const { code, message } = answer.error;
    const said = printable(String(message), 300);
    if (code === 'NOT_FOUND') throw new FeedGone(said);
    if (code === 'UNAUTHENTICATED')
      throw new KeysError(code, `The origin behind ${this.origin} does not accept the token: ${said}`);
    if (code === 'FORBIDDEN')
      throw new KeysError(code, `The origin refuses the token: ${said} An edge needs a key with EDGE:READ_ANY.`);
    throw new KeysError(
      code === 'OPTION_INVALID' ? 'INPUT_INVALID' : 'SERVER_FAILED',
      `The origin has failed: ${said}`,
    );
  }

  /** The entries after a number, as they arrive. */
  async #entries(after: number, signal: AbortSignal): Promise<Entries> {
    try {
      const domain = this.#domain;
      const { nats, connection } = await this.#connection();
      const consumer = await nats
        .jetstream(connection, { timeout: API_MS, ...(domain && { domain }) })
        .consumers.get(this.#names.stream, {
          deliver_policy: nats.DeliverPolicy.StartSequence,
          opt_start_seq: after + 1,
        });
      return new Entries(await consumer.consume({ max_messages: MAX_ENTRIES }), signal);
    } catch (error) {
      throw this.#failure(error);
    }
  }

  #connection(): Promise<Connected> {
    if (this.#isClosed) return Promise.reject(new Error('it was closed'));
    this.#connected ??= connectTo(this.#options.settings).then(
      (connected) => {
        void connected.connection.closed().then(() => (this.#connected = undefined));
        return connected;
      },
      (error: unknown) => {
        this.#connected = undefined;
        throw error;
      },
    );
    return this.#connected;
  }

  #failure(error: unknown): Error {
    return error instanceof FeedGone ? error : failureOf(error, this.#options.settings);
  }

  #incompatible(): KeysError {
    const what = `The origin behind ${this.origin} sent an unknown answer.`;
    return new KeysError('SERVER_INCOMPATIBLE', `${what} Use the same version on both sides.`);
  }
}

/** Arrived entries that are not taken yet. */
class Entries {
  readonly #messages: AsyncIterable<JsMsg> & { close(): Promise<unknown> };
  readonly #signal: AbortSignal;
  readonly #ended: Promise<void>;
  #waiting: JsMsg[] = [];
  readonly #arrived = new Wakeup();
  #taken = Promise.withResolvers<void>();
  #problem: unknown;

  constructor(messages: AsyncIterable<JsMsg> & { close(): Promise<unknown> }, signal: AbortSignal) {
    this.#messages = messages;
    this.#signal = signal;
    this.#ended = this.#receive().catch((error: unknown) => {
      this.#problem = error;
      this.#arrived.wake();
    });
  }

  /**
   * All waiting entries, or the next ones that arrive in time: none after the time or an abort.
   * @throws Error of the library
   */
  async next(withinMs: number, rest?: AbortSignal): Promise<JsMsg[]> {
    const ended = rest ? AbortSignal.any([this.#signal, rest]) : this.#signal;
    if (this.#waiting.length === 0 && !this.#problem) await this.#arrived.wait(withinMs, ended);
    this.#signal.throwIfAborted();
    if (this.#problem) throw this.#problem as Error;
    const found = this.#waiting;
    this.#waiting = [];
    this.#taken.resolve();
    this.#taken = Promise.withResolvers();
    return found;
  }

  async close(): Promise<void> {
    this.#taken.resolve();
    await this.#messages.close();
    await this.#ended;
  }

  async #receive(): Promise<void> {
    for await (const message of this.#messages) {
      this.#waiting.push(message);
      this.#arrived.wake();
      // Request no more until waiting entries are taken.
      if (this.#waiting.length >= MAX_ENTRIES) await this.#taken.promise;
    }
    throw new Error('it sends no more');
  }
}

/** A line for `FeedLines`; empty for entries that are not keys. */
function lineOf({ subject, data, headers }: JsMsg): string {
  const name = subject.slice(subject.indexOf('.', '$KV.'.length) + 1);
  if (name.includes('.')) return '';
  if (!headers?.get(OPERATION_HEADER)) return `+${Buffer.from(data).toString()}\n`;
  return `-${JSON.stringify([Buffer.from(name, 'base64url').toString()])}\n`;
}

function lastLine(position: string, leaseMs: number): Buffer {
  return Buffer.from(`=${JSON.stringify([position, leaseMs])}\n`);
}

function sequenceOf(position: string): number {
  return Number(position.slice(position.lastIndexOf('.') + 1));
}

function withSequence(position: string, sequence: number): string {
  return `${position.slice(0, position.lastIndexOf('.'))}.${sequence}`;
}
