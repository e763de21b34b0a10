import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Client, ClientConfig, QueryResult, QueryResultRow } from 'pg';
import { debug, isKeysError, KeysError, UUID } from '../../keys/basics/index.ts';
import {
  type ChangeSource,
  type Follower,
  type Following,
  type NotificationReport,
  type Received,
  STORE_LEASE_MS,
} from '../../keys/repository/index.ts';
import { driverCodeOf } from '../errors.ts';
import { KeyChanges, MAX_CHANGES } from '../key-changes.ts';
import { isLost, isSilence, loadDriver, postgresError } from './postgres-pool.ts';

/** How long the revision is trusted after the last answered heartbeat. */
export const TRUST_MS = STORE_LEASE_MS;
/** The pause between heartbeats: while the revision is in demand, and otherwise. */
const HEARTBEAT_MS = { busy: 500, idle: 1500 } as const;
/**
 * How long a connection sends heartbeats before it is renewed, since the address can lead to another server by then.
 */
const RENEWAL_MS = { busy: 2000, idle: 4000 } as const;
const RETRY_MS = 250;
/** How long a closing listener waits for its own followers, in milliseconds. */
const ENDING_MS = 50;
/** How many connection attempts in a row must go unanswered before the server counts as silent. */
const SILENT_AFTER = 2;
/** The pause after notifications have repeatedly not arrived. */
const RETRY_LOST_MS = 10_000;

/**
 * The heartbeat. It returns the schema, to ignore other stores; the head of the audit log, in case a notification gets
 * lost, with the hash of the head seen last and the keys changed since then; and it notifies the listener with a token.
 * It also renews the lease of a follower, for which waiting for the disk is not worthwhile.
 */
const HEARTBEAT = `with gone as (
      delete from followers where $1::bigint is null and leased_until < extract(epoch from now()) * 1000 - 3600000
    ), renewed as (
      insert into followers as follower (id, seen, leased_until)
        select $4, least($5, number), extract(epoch from clock_timestamp()) * 1000 + ${TRUST_MS} from change_number
        on conflict (id) do update set seen = excluded.seen, leased_until = excluded.leased_until
        returning set_config('synchronous_commit', 'off', true)
    )
  select current_schema() as schema,
    (select number from change_number) as change, number, hash,
    (select hash from audit_log where number = $1) as "seenHash",
    array(select key_id from audit_log
      where number > $1 and key_id is not null and action not in ('CREATE', 'IMPORT', 'REFUSE')
      order by number limit ${MAX_CHANGES + 1}) as changed,
    pg_notify($2, $3)
  from (select 1) as always left join audit_head on true`;

interface Heartbeat {
  schema: string;
  /** The number of the last change. */
  change: string;
  /** Number of the head; null while the log is empty. */
  number: string | null;
  hash: string | null;
  seenHash: string | null;
  changed: string[];
}

/** Any database user can send notifications with any number, so a confirmation never exceeds the committed number. */
const CONFIRM = `update followers set seen = least($2, (select number from change_number)) where id = $1
  returning seen, set_config('synchronous_commit', 'off', true)`;
const LEAVE = 'delete from followers where id = $1';

/** The SQLSTATE of a standby, which cannot send notifications. */
const READ_ONLY = '25006';

/** The offset between the machine's monotonic clock and `performance.now`, in milliseconds, which never changes. */
const MACHINE_AHEAD_MS = Number(process.hrtime.bigint()) / 1e6 - performance.now();

/** Options of `ReceivedChanges`. */
export interface ReceivedChangesOptions {
  source: ChangeSource;
  /** Discards existing connections, which may lead to a server that was replaced. */
  renewPool: () => void;
}

/** The changes of keys that this process, or another one of the machine, was notified of, while that is reliable. */
export class ReceivedChanges {
  readonly #source: ChangeSource;
  readonly #renewPool: () => void;
  readonly #changes = new KeyChanges();
  /** The number of messages received. */
  #received = 0;
  /** When the last answered heartbeat was sent. */
  #aliveAt = Number.NEGATIVE_INFINITY;
  #isStarted = false;
  #report: NotificationReport = () => {};
  #follower: Follower | undefined;
  /** Resolves once the follower's recipients know all received changes. */
  #followed: Promise<void> | undefined;
  /** Resolves once the state is reliable for the first time, or the reason is known why not. */
  readonly #told = Promise.withResolvers<void>();
  /** Why notifications are lost; undefined while they arrive. */
  #problem: Error | undefined;
  #isSilent = false;

  constructor({ source, renewPool }: ReceivedChangesOptions) {
    this.#source = source;
    this.#renewPool = renewPool;
  }

  /** See `KeyRepository.revision`. Listening starts with the first call, so short-lived programs avoid it. */
  revision(): number | undefined {
    this.#start();
    this.#source.asked();
    return this.#isTrusted ? this.#changes.revision : undefined;
  }

  /** See `Connection.changesReceived`. */
  changesReceived(): number | undefined {
    return this.#isTrusted ? this.#received : undefined;
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

  /** Why the server cannot be asked: connection attempts, which continue, go unanswered; otherwise undefined. */
  silence(): Error | undefined {
    return this.#isSilent ? this.#problem : undefined;
  }

  /** See `KeyRepository.follow`. The store waits for this process as long as its received changes are trusted. */
  async follow(follower: Follower): Promise<Omit<Following, 'note'>> {
    this.#follower = follower;
    let isStopped = false;
    this.#start();
    this.#source.followed?.();
    if (!this.#isTrusted) await Promise.race([this.#told.promise, delay(TRUST_MS, undefined, { ref: false })]);
    return {
      leasedUntil: () => {
        this.#source.asked();
        return isStopped ? Number.NEGATIVE_INFINITY : this.#aliveAt + TRUST_MS;
      },
      // Changes keep waiting for its recipients.
      stop: async () => void (isStopped = true),
    };
  }

  /** Counts these keys as changed at once, after a change by this process. */
  changed(ids: readonly string[]): void {
    this.#changes.add(ids);
    this.#followed = this.#follower?.changed();
  }

  close(): Promise<void> {
    return this.#source.close();
  }

  get #isTrusted(): boolean {
    return performance.now() - this.#aliveAt < TRUST_MS;
  }

  #start(): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    this.#source.start((received) => this.#hear(received));
  }

  /** @returns resolves once the follower's recipients know of it as well */
  #hear(received: Received): Promise<void> | undefined {
    this.#take(received);
    if (received.alive === null) return this.#follower?.ended();
    if (received.changed) this.#followed = this.#follower?.changed();
    return received.changed || received.change !== undefined ? this.#followed : undefined;
  }

  #take({ changed, alive, problem, renewsPool }: Received): void {
    if (renewsPool) this.#renewPool();
    if (changed) this.#received += 1;
    if (changed === 'any') this.#changes.addUnknown();
    else if (changed) this.#changes.add(changed);
    if (alive) {
      this.#aliveAt = alive.askedAt - MACHINE_AHEAD_MS;
      this.#setProblem(undefined, false);
    } else if (alive === null) this.#aliveAt = Number.NEGATIVE_INFINITY;
    if (problem) this.#setProblem(new KeysError(problem.code, problem.message), problem.isSilence);
  }

  #setProblem(problem: Error | undefined, isSilent: boolean): void {
    this.#told.resolve();
    const isNew = problem?.message !== this.#problem?.message;
    this.#problem = problem;
    this.#isSilent = isSilent;
    if (isNew) this.#report(problem);
  }
}

/**
 * Listens for changes of keys on a connection of its own. Notifications are part of the transaction of a change, so
 * none is missed while the connection is alive and leads to the server at the address. Regular heartbeats prove that:
 * each sends a token, through another connection that is renewed every few seconds, and the token must arrive. It does
 * not arrive behind a pooler that lends the session to others between transactions, nor after the address has moved to
 * another server while the old one lives on. No queries are sent on the listening connection: the pooler would lend it
 * the session meanwhile, and the token could arrive by chance.
 *
 * It is a follower of the store: it confirms each change once its receivers have processed it. Notifications arrive in
 * the order of commits, so the token of a heartbeat comes after all changes made before it.
 */
export class PostgresListener implements ChangeSource {
  readonly #config: ClientConfig;
  readonly #location: string;
  /** One for all connections, since sessions that a pooler lends to others keep listening. */
  readonly #channel = `svc_api_${randomBytes(8).toString('hex')}`;
  readonly #closed = new AbortController();
  #hear: (received: Received) => void | Promise<void> = () => {};
  /** Its id as a follower, until its connection ends. */
  #id = '';
  /** The last processed change, and the last confirmed one. */
  #seen = 0;
  #confirmed = 0;
  #isConfirming = false;
  #client: Client | undefined;
  #sender: Sender | undefined;
  #isBusy = false;
  #busy = Promise.withResolvers<void>();

  /** @param location the URL without its password */
  constructor(config: ClientConfig, location: string) {
    this.#location = location;
    this.#config = {
      ...config,
      connectionTimeoutMillis: TRUST_MS,
      query_timeout: TRUST_MS,
      statement_timeout: TRUST_MS,
      keepAlive: true,
    };
  }

  start(hear: (received: Received) => void | Promise<void>): void {
    this.#hear = hear;
    void this.#run();
  }

  asked(): void {
    if (this.#isBusy) return;
    this.#isBusy = true;
    this.#busy.resolve();
  }

  async close(): Promise<void> {
    const left = this.#disconnect({ isClosing: true });
    this.#closed.abort();
    await left;
  }

  async #run(): Promise<void> {
    let [silences, wasLost] = [0, false];
    while (!this.#closed.signal.aborted) {
      const listened = { isProven: false };
      const error: unknown = await this.#listen(listened).catch((reason: unknown) => reason);
      void this.#disconnect();
      if (this.#closed.signal.aborted) return;
      if (listened.isProven) [silences, wasLost] = [0, false];
      silences = isSilence(error) ? silences + 1 : 0;
      const reason = postgresError(error, this.#location);
      const code = isKeysError(reason) ? reason.code : 'STORE_FAILED';
      void this.#hear({ problem: { code, message: reason.message, isSilence: silences >= SILENT_AFTER } });
      const isLostAgain = wasLost && error instanceof NotificationsLostError;
      wasLost = true;
      await this.#wait(isLostAgain ? RETRY_LOST_MS : RETRY_MS, this.#closed.signal);
    }
  }

  /** Listens until an error. @throws that error */
  async #listen(listened: { isProven: boolean }): Promise<never> {
    const client = (this.#client = await this.#connect());
    const ended = new AbortController();
    const { signal } = ended;
    const lost = (error = new Error('Connection terminated')) => {
      if (this.#client === client) void this.#disconnect();
      ended.abort(error);
    };
    client.on('error', lost).on('end', lost);
    let seen: Heartbeat | undefined;
    let [token, arrived] = ['', Promise.withResolvers<boolean>()];
    client.on('notification', ({ channel, payload }) => {
      if (channel === 'svc_api_changed_keys') this.#receive(payload, seen?.schema);
      else if (payload === token) arrived.resolve(true);
    });
    await client.query(`listen svc_api_changed_keys; listen ${this.#channel}`);
    debug('changes of keys are listened for', () => ({ store: this.#location }));
    // Earlier notifications were missed.
    void this.#hear({ changed: 'any' });
    this.#id = randomUUID();
    for (;;) {
      const isBusy = this.#isBusy || !seen;
      [this.#isBusy, this.#busy] = [false, Promise.withResolvers()];
      [token, arrived] = [randomUUID(), Promise.withResolvers()];
      const askedAt = performance.now();
      const heartbeat = await this.#ask(seen, token, isBusy);
      const tooLate = delay(ARRIVAL_MS, false, { ref: false, signal }).catch(() => false);
      const isReceived = await Promise.race([arrived.promise, tooLate]);
      signal.throwIfAborted();
      // New connections lead to the server at the address; older ones may lead to another.
      if (!seen || !isReceived) void this.#hear({ renewsPool: true });
      if (!isReceived) throw new NotificationsLostError(this.#location);
      const isContinued = heartbeat.seenHash === seen?.hash;
      if (heartbeat.hash !== seen?.hash) void this.#hear({ changed: isContinued ? heartbeat.changed : 'any' });
      const change = Number(heartbeat.change);
      // Numbers can repeat in a store that was restored.
      if (!isContinued) this.#seen = change;
      // After the first heartbeat, this is the confirmation in the store.
      if (!seen) this.#confirmed = change;
      seen = heartbeat;
      listened.isProven = true;
      this.#tell({ alive: { askedAt: askedAt + MACHINE_AHEAD_MS }, change });
      await this.#wait(HEARTBEAT_MS.busy, signal);
      if (!this.#isBusy)
        await Promise.race([this.#busy.promise, this.#wait(HEARTBEAT_MS.idle - HEARTBEAT_MS.busy, signal)]);
      signal.throwIfAborted();
    }
  }

  /** Sends a heartbeat through a recently made connection. @throws errors of the driver */
  async #ask(last: Heartbeat | undefined, token: string, isBusy: boolean): Promise<Heartbeat> {
    const age = performance.now() - (this.#sender?.madeAt ?? 0);
    if (age >= RENEWAL_MS[isBusy ? 'busy' : 'idle']) this.#endSender();
    for (;;) {
      const isNew = this.#sender === undefined;
      try {
        if (!this.#sender) {
          const madeAt = performance.now();
          this.#sender = new Sender(await this.#connect(), madeAt);
        }
        const head = last ? (last.number ?? '0') : null;
        const values = [head, this.#channel, token, this.#id, last ? this.#seen : null];
        return (await this.#sender.query<Heartbeat>(HEARTBEAT, values)).rows[0]!;
      } catch (error) {
        this.#endSender();
        if (driverCodeOf(error) === READ_ONLY) void this.#hear({ renewsPool: true });
        // A lost sender says nothing about the listening connection.
        if (isNew || !isLost(error)) throw error;
      }
    }
  }

  async #connect(): Promise<Client> {
    const { Client } = await loadDriver();
    const { signal } = this.#closed;
    signal.throwIfAborted();
    const client = new Client(this.#config);
    const end = () => void client.end().catch(() => {});
    signal.addEventListener('abort', end);
    client.on('error', () => {});
    try {
      await client.connect();
      signal.throwIfAborted();
    } finally {
      signal.removeEventListener('abort', end);
    }
    (client as Client & { unref(): void }).unref();
    return client;
  }

  /**
   * Handles a notification of the triggers or of `announceChange`.
   * @param ours our schema, unknown before the first heartbeat
   */
  #receive(payload: string | undefined, ours: string | undefined): void {
    const received = readPayload(payload);
    if (received && ours !== undefined && received.schema !== ours) return;
    this.#tell({ changed: received?.keys ?? 'any', ...(received?.number && { change: received.number }) });
  }

  /** Passes news on, and confirms its change once it is processed. */
  #tell(received: Received): void {
    const { change } = received;
    const id = this.#id;
    const taken = () => {
      if (change === undefined || id !== this.#id) return;
      this.#seen = Math.max(change, this.#seen);
      void this.#confirm();
    };
    const told = this.#hear(received);
    if (told) void told.then(taken);
    else taken();
  }

  /** Confirms the processed changes. If that fails, the next heartbeat does it. */
  async #confirm(): Promise<void> {
    if (this.#isConfirming) return;
    this.#isConfirming = true;
    try {
      while (this.#sender && this.#confirmed !== this.#seen) {
        const told = this.#seen;
        const { rows } = await this.#sender.query<{ seen: string }>(CONFIRM, [this.#id, told]);
        this.#confirmed = Number(rows[0]?.seen ?? told);
        if (this.#seen === told) this.#seen = this.#confirmed;
      }
    } catch {
      this.#endSender();
    } finally {
      this.#isConfirming = false;
    }
  }

  /** Stops following, so that no change waits once nothing is trusted. */
  async #disconnect({ isClosing = false } = {}): Promise<void> {
    const [client, sender, id] = [this.#client, this.#sender, this.#id];
    [this.#client, this.#sender] = [undefined, undefined];
    client?.end().catch(() => {});
    const ended = Promise.resolve(this.#hear({ alive: null })).then(() => true);
    // A closing program does not wait for its own followers for long: its lease expires by itself.
    const hasEnded = await (isClosing ? Promise.race([ended, delay(ENDING_MS, false)]) : ended);
    // Keeps the process alive until this is done.
    (sender?.client as (Client & { ref(): void }) | undefined)?.ref();
    if (hasEnded) await sender?.query(LEAVE, [id]).catch(() => {});
    await sender?.client.end().catch(() => {});
  }

  #endSender(): void {
    const sender = this.#sender;
    this.#sender = undefined;
    sender?.client.end().catch(() => {});
  }

  async #wait(durationMs: number, signal: AbortSignal): Promise<void> {
    await delay(durationMs, undefined, { ref: false, signal }).catch(() => {});
  }
}

/** A connection that sends one query at a time, since the driver will stop queueing them. */
class Sender {
  readonly client: Client;
  /** Milliseconds of `performance.now`. */
  readonly madeAt: number;
  #last: Promise<unknown> = Promise.resolve();

  constructor(client: Client, madeAt: number) {
    this.client = client;
    this.madeAt = madeAt;
  }

  /** Sends a query after the last one. @throws errors of the driver */
  query<Row extends QueryResultRow>(text: string, values: unknown[]): Promise<QueryResult<Row>> {
    const result = this.#last.then(() => this.client.query<Row>(text, values));
    this.#last = result.catch(() => {});
    return result;
  }
}

/** Reads a notification. Undefined if it does not have the triggers' form, since any database user can notify. */
function readPayload(
  payload: string | undefined,
): { schema: unknown; keys?: readonly string[]; number?: number } | undefined {
  try {
    const { schema, keys, number } = JSON.parse(payload ?? '') as { schema: unknown; keys?: unknown; number?: unknown };
    if (!areIds(keys)) return { schema };
    return Number.isSafeInteger(number) ? { schema, keys, number: number as number } : { schema, keys };
  } catch {
    return undefined;
  }
}

function areIds(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string' && UUID.test(item));
}

/** How long the token can take to arrive. */
const ARRIVAL_MS = 1000;

/** The error for a connection that does not receive notifications sent at the address. */
class NotificationsLostError extends KeysError {
  constructor(location: string) {
    super(
      'STORE_UNAVAILABLE',
      `The key store ${location} does not notify of changes: a connection pooler is not in session mode, or the ` +
        'address now leads to another server. Give the address of the server itself, or set the pooler to session mode.',
    );
  }
}
