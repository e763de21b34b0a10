import { setTimeout as delay } from 'node:timers/promises';
import type { Client, ClientConfig } from 'pg';
import { loadDriver } from './postgres-pool.ts';

/** For how long after the last question that the server has answered its silence means that nothing has changed, in milliseconds. */
export const TRUST_MS = 2000;
const HEARTBEAT_MS = 500;
const RETRY_MS = 250;

/** The schema, to hear of its own keys alone, and what moves with each change, should an announcement get lost. */
const STATE = 'select current_schema() as schema, (select hash from audit_head) as head';

/**
 * Hears on a connection of its own of each change of a key. Announcements are made in the transaction of the change, so
 * that none can be missed while the connection lives; that it does is asked over and over.
 */
export class PostgresListener {
  readonly #config: ClientConfig;
  readonly #closed = new AbortController();
  #revision = 0;
  /** When the newest question was asked that has been answered. */
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

  /** See `KeyRepository.revision`. The first call starts the listening: a program that ends soon does without. */
  revision(): number | undefined {
    if (!this.#isStarted) this.#start();
    return performance.now() - this.#aliveAt < TRUST_MS ? this.#revision : undefined;
  }

  /** This program has changed something, and need not wait until it hears of it. */
  changed(): void {
    this.#revision += 1;
  }

  close(): void {
    this.#closed.abort();
    this.#leave();
  }

  #start(): void {
    this.#isStarted = true;
    void this.#run();
  }

  async #run(): Promise<void> {
    while (!this.#closed.signal.aborted) {
      // Whatever is wrong with the database is for who asks it for a key.
      await this.#listen().catch(() => {});
      this.#leave();
      await this.#wait(RETRY_MS, this.#closed.signal);
    }
  }

  async #listen(): Promise<void> {
    const { Client } = await loadDriver();
    if (this.#closed.signal.aborted) return;
    const client = (this.#client = new Client(this.#config));
    const ended = new AbortController();
    const lost = () => {
      if (this.#client === client) this.#leave();
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
    // What was announced before it listened is unknown.
    this.changed();
    while (!ended.signal.aborted && this.#client === client) {
      const asked = performance.now();
      const { rows } = await client.query<typeof state>(STATE);
      if (this.#client !== client) return;
      if (rows[0]!.head !== state.head) this.changed();
      state = rows[0]!;
      this.#aliveAt = asked;
      await this.#wait(HEARTBEAT_MS, ended.signal);
    }
  }

  #leave(): void {
    this.#aliveAt = Number.NEGATIVE_INFINITY;
    const client = this.#client;
    this.#client = undefined;
    client?.end().catch(() => {});
  }

  async #wait(time: number, signal: AbortSignal): Promise<void> {
    await delay(time, undefined, { ref: false, signal }).catch(() => {});
  }
}
