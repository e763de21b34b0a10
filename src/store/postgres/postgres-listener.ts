import { setTimeout as delay } from 'node:timers/promises';
import type { Client, ClientConfig } from 'pg';
import { loadDriver } from './postgres-pool.ts';

/** How long after the last heartbeat that was answered the revision is trusted. */
export const TRUST_MS = 2000;
const HEARTBEAT_MS = 500;
const RETRY_MS = 250;

/** The heartbeat: the schema, to ignore other stores, and the head of the audit log, should a notification get lost. */
const HEARTBEAT = 'select current_schema() as schema, (select hash from audit_head) as head';

/**
 * Listens on a connection of its own for changes of keys. Notifications are part of the transaction of the change, so
 * that none is missed while the connection is alive, which a regular heartbeat checks.
 */
export class PostgresListener {
  readonly #config: ClientConfig;
  readonly #closed = new AbortController();
  #revision = 0;
  /** When the last heartbeat that was answered was sent. */
  #aliveAt = Number.NEGATIVE_INFINITY;
  #client: Client | undefined;
  #isStarted = false;

  constructor(config: ClientConfig) {
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
    if (!this.#isStarted) this.#start();
    return performance.now() - this.#aliveAt < TRUST_MS ? this.#revision : undefined;
  }

  /** Changes the revision at once, as after a change by this process. */
  changed(): void {
    this.#revision += 1;
  }

  close(): void {
    this.#closed.abort();
    this.#disconnect();
  }

  #start(): void {
    this.#isStarted = true;
    void this.#run();
  }

  async #run(): Promise<void> {
    while (!this.#closed.signal.aborted) {
      // The next query for a key reports what is wrong.
      await this.#listen().catch(() => {});
      this.#disconnect();
      await this.#wait(RETRY_MS, this.#closed.signal);
    }
  }

  async #listen(): Promise<void> {
    const { Client } = await loadDriver();
    if (this.#closed.signal.aborted) return;
    const client = (this.#client = new Client(this.#config));
    const ended = new AbortController();
    const lost = () => {
      if (this.#client === client) this.#disconnect();
      ended.abort();
    };
    client.on('error', lost).on('end', lost);
    await client.connect();
    (client as Client & { unref(): void }).unref();
    let state = { schema: '', head: '' };
    client.on('notification', ({ payload }) => {
      if (payload === state.schema) this.changed();
    });
    await client.query('listen svc_api_keys');
    // Earlier notifications were missed.
    this.changed();
    while (!ended.signal.aborted && this.#client === client) {
      const sentAt = performance.now();
      const { rows } = await client.query<typeof state>(HEARTBEAT);
      if (this.#client !== client) return;
      if (rows[0]!.head !== state.head) this.changed();
      state = rows[0]!;
      this.#aliveAt = sentAt;
      await this.#wait(HEARTBEAT_MS, ended.signal);
    }
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
