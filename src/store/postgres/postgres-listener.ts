import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Client, ClientConfig, Notification } from 'pg';
import { debug, KeysError } from '../../keys/basics/index.ts';
import type { NotificationReport } from '../../keys/repository/index.ts';
import { driverCodeOf } from '../errors.ts';
import { KeyChanges, MAX_CHANGES } from '../connection.ts';
import { isSilence, loadDriver, postgresError } from './postgres-pool.ts';

/** How long after the last heartbeat that was answered the revision is trusted. */
export const TRUST_MS = 2000;
const HEARTBEAT_MS = 500;
/** How long after the beginning of a proof that notifications arrive the next one begins. */
const PROOF_INTERVAL_MS = 2000;
const RETRY_MS = 250;
/** After how many connections in a row that nobody answered the server is known to be silent. */
const SILENT_AFTER = 2;
/** How long to wait after notifications have again not arrived. */
const RETRY_LOST_MS = 10_000;

/**
 * The heartbeat: the schema, to ignore other stores, and the head of the audit log, should a notification get lost:
 * with the hash of the head that was seen last, if it is still there, and the keys that were changed since.
 */
const HEARTBEAT = `select current_schema() as schema, extract(epoch from clock_timestamp()) * 1000 as time,
    number, hash,
    (select hash from audit_log where number = $1) as "seenHash",
    array(select key_id from audit_log
      where number > $1 and key_id is not null and action not in ('CREATE', 'IMPORT', 'REFUSE')
      order by number limit ${MAX_CHANGES + 1}) as changed
  from (select 1) as always left join audit_head on true`;

interface Heartbeat {
  schema: string;
  /** The server's, in milliseconds since 1970. */
  time: string;
  /** Of the head; null while the log is empty. */
  number: string | null;
  hash: string | null;
  seenHash: string | null;
  changed: string[];
}

/** The SQLSTATE of a standby, where nothing can be said. */
const READ_ONLY = '25006';

/** The clock of a database server, as far as its answers tell. */
export class ServerClock {
  /** By how much it is ahead of `performance.now`, in milliseconds. */
  #ahead = Number.NEGATIVE_INFINITY;

  /** In milliseconds since 1970. */
  now(): number {
    return Math.floor(performance.now() + this.#ahead);
  }

  /**
   * Takes an answer, which is as old as it took to arrive, at most.
   * @param time when it was made, in milliseconds since 1970
   * @param askedAt by `performance.now`
   */
  answered(time: number, askedAt: number): void {
    const atLeast = time - performance.now();
    this.#ahead = Math.min(Math.max(this.#ahead, atLeast), time - askedAt);
  }
}

/** What a listener needs. */
export interface PostgresListenerOptions {
  config: ClientConfig;
  /** The URL without its password. */
  location: string;
  /** Is told the time by each heartbeat. */
  clock: ServerClock;
  /** Gives up the connections that were made so far: they may lead to a server that was replaced. */
  renewPool: () => void;
}

/**
 * Listens on a connection of its own for changes of keys. Notifications are part of the transaction of the change, so
 * that none is missed while the connection is alive, which a regular heartbeat checks, and while it receives what is
 * sent at the address, which is proven regularly.
 */
export class PostgresListener {
  readonly #config: ClientConfig;
  readonly #location: string;
  readonly #clock: ServerClock;
  readonly #renewPool: () => void;
  /** One for all connections: those that a pooler lends to others go on listening. */
  readonly #channel = `svc_api_${randomBytes(8).toString('hex')}`;
  readonly #closed = new AbortController();
  readonly #changes = new KeyChanges();
  /** When the last heartbeat that was answered was sent. */
  #aliveAt = Number.NEGATIVE_INFINITY;
  #client: Client | undefined;
  #isStarted = false;
  #report: NotificationReport = () => {};
  /** Why notifications are lost, if that is so. */
  #problem: Error | undefined;
  /** How many connections in a row nobody answered. */
  #silences = 0;

  constructor({ config, location, clock, renewPool }: PostgresListenerOptions) {
    this.#location = location;
    this.#clock = clock;
    this.#renewPool = renewPool;
    this.#config = {
      ...config,
      connectionTimeoutMillis: TRUST_MS,
      query_timeout: TRUST_MS,
      statement_timeout: TRUST_MS,
      keepAlive: true,
    };
  }

  /** See `KeyRepository.revision`. The first call starts listening: a short-lived program does without. */
  revision(): number | undefined {
    this.#start();
    return performance.now() - this.#aliveAt < TRUST_MS ? this.#changes.revision : undefined;
  }

  /** See `KeyRepository.keysChangedSince`. */
  keysChangedSince(revision: number): readonly string[] | 'any' {
    return this.#changes.since(revision);
  }

  /** See `KeyRepository.watchHearing`. Starts listening. */
  watchHearing(report: NotificationReport): void {
    this.#report = report;
    this.#start();
  }

  /** Why there is no use in asking the server: nobody answers there, as is tried all the time; undefined otherwise. */
  silence(): Error | undefined {
    return this.#silences >= SILENT_AFTER ? this.#problem : undefined;
  }

  /** Counts these keys as changed at once, as after a change by this process. */
  changed(ids: readonly string[]): void {
    this.#changes.add(ids);
  }

  close(): void {
    this.#closed.abort();
    this.#disconnect();
  }

  #start(): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    void this.#run();
  }

  async #run(): Promise<void> {
    while (!this.#closed.signal.aborted) {
      const error: unknown = await this.#listen().catch((reason: unknown) => reason);
      this.#disconnect();
      if (this.#closed.signal.aborted) return;
      this.#silences = isSilence(error) ? this.#silences + 1 : 0;
      const isLostAgain = this.#problem !== undefined && error instanceof NotificationsLostError;
      this.#setProblem(postgresError(error, this.#location));
      await this.#wait(isLostAgain ? RETRY_LOST_MS : RETRY_MS, this.#closed.signal);
    }
  }

  /** Listens for as long as that works. @throws what ended it */
  async #listen(): Promise<never> {
    const { Client } = await loadDriver();
    this.#closed.signal.throwIfAborted();
    const client = (this.#client = new Client(this.#config));
    const ended = new AbortController();
    const { signal } = ended;
    const lost = (error = new Error('Connection terminated')) => {
      if (this.#client === client) this.#disconnect();
      ended.abort(error);
    };
    client.on('error', lost).on('end', lost);
    await client.connect();
    (client as Client & { unref(): void }).unref();
    let seen: Heartbeat | undefined;
    client.on('notification', ({ channel, payload }) => {
      if (channel === 'svc_api_changed_keys') this.#receive(payload, seen?.schema);
    });
    await client.query(`listen svc_api_changed_keys; listen ${this.#channel}`);
    debug('changes of keys are listened for', () => ({ store: this.#location }));
    // Earlier notifications were missed.
    this.#changes.addUnknown();
    let provenAt = Number.NEGATIVE_INFINITY;
    for (;;) {
      const now = performance.now();
      if (now - provenAt >= PROOF_INTERVAL_MS) {
        await this.#prove({ client, channel: this.#channel, signal }, provenAt);
        provenAt = now;
      }
      const sentAt = performance.now();
      const { rows } = await client.query<Heartbeat>(HEARTBEAT, [seen ? (seen.number ?? 0) : null]);
      signal.throwIfAborted();
      const heartbeat = rows[0]!;
      this.#clock.answered(Number(heartbeat.time), sentAt);
      if (heartbeat.hash !== seen?.hash) {
        if (heartbeat.seenHash === seen?.hash) this.#changes.add(heartbeat.changed);
        else this.#changes.addUnknown();
      }
      seen = heartbeat;
      this.#aliveAt = sentAt;
      this.#silences = 0;
      this.#setProblem(undefined);
      await this.#wait(HEARTBEAT_MS, signal);
      signal.throwIfAborted();
    }
  }

  /** @throws NotificationsLostError, or what the driver throws */
  async #prove(listening: Listening, provenAt: number): Promise<void> {
    const isReceived = await receivesFromAddress(listening, this.#config).catch((error: unknown) => {
      if (driverCodeOf(error) === READ_ONLY) this.#renewPool();
      throw error;
    });
    listening.signal.throwIfAborted();
    const isFirst = provenAt === Number.NEGATIVE_INFINITY;
    // This connection leads to the server at the address; older ones may lead to another.
    if (isFirst || !isReceived) this.#renewPool();
    if (!isReceived) throw new NotificationsLostError(this.#location);
  }

  /** Takes a notification: see `announceChangedKeys`. Before the first heartbeat nothing is trusted anyway. */
  #receive(payload: string | undefined, ours: string | undefined): void {
    const received = readPayload(payload);
    if (received && received.schema !== ours) return;
    if (received?.keys) this.#changes.add(received.keys);
    else this.#changes.addUnknown();
  }

  #setProblem(problem: Error | undefined): void {
    const isNew = (problem === undefined) !== (this.#problem === undefined);
    this.#problem = problem;
    if (isNew) this.#report(problem);
  }

  #disconnect(): void {
    this.#aliveAt = Number.NEGATIVE_INFINITY;
    const client = this.#client;
    this.#client = undefined;
    client?.end().catch(() => {});
  }

  async #wait(durationMs: number, signal: AbortSignal): Promise<void> {
    await delay(durationMs, undefined, { ref: false, signal }).catch(() => {});
  }
}

/** Anybody who may connect can notify anything: undefined where it is not what the triggers say. */
function readPayload(payload: string | undefined): { schema: unknown; keys?: readonly string[] } | undefined {
  try {
    const { schema, keys } = JSON.parse(payload ?? '') as { schema: unknown; keys?: unknown };
    return isTexts(keys) ? { schema, keys } : { schema };
  } catch {
    return undefined;
  }
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

/** How long after it was sent the token may take to arrive. */
const ARRIVAL_MS = 1000;

/** A connection does not receive what is sent at the address. */
class NotificationsLostError extends KeysError {
  constructor(location: string) {
    super(
      'STORE_UNAVAILABLE',
      `The key store ${location} does not notify of changes: a connection pooler in between does not pool sessions, ` +
        'or the address has just come to lead to another server. Give the address of the server itself, or let the ' +
        'pooler pool sessions.',
    );
  }
}

/** A connection that listens, and what it listens to. */
export interface Listening {
  client: Client;
  /** A channel that only this connection listens on. */
  channel: string;
  /** Aborted when the connection ends. */
  signal: AbortSignal;
}

/**
 * Whether a connection receives what is sent at an address now: a token that a new connection sends there must arrive.
 * It does not behind a pooler that lends the session to others between transactions, nor when the address has come to
 * lead to another server while this one lives on. Nothing else may be asked meanwhile: such a pooler would lend the
 * session for as long, and the token could arrive by chance.
 * @throws what the driver throws if no connection can be made
 */
async function receivesFromAddress(
  { client: listener, channel, signal }: Listening,
  config: ClientConfig,
): Promise<boolean> {
  const { Client } = await loadDriver();
  const sender = new Client(config);
  sender.on('error', () => {});
  const token = randomUUID();
  const received = Promise.withResolvers<boolean>();
  const receive = ({ payload }: Notification) => payload === token && received.resolve(true);
  listener.on('notification', receive);
  try {
    await sender.connect();
    (sender as Client & { unref(): void }).unref();
    await sender.query('select pg_notify($1, $2)', [channel, token]);
    const tooLate = delay(ARRIVAL_MS, false, { ref: false, signal }).catch(() => false);
    return await Promise.race([received.promise, tooLate]);
  } finally {
    listener.off('notification', receive);
    sender.end().catch(() => {});
  }
}
