import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type Kysely, sql } from 'kysely';
import type { PoolConfig } from 'pg';
import { KeysError } from '../../keys/basics/index.ts';
import type {
  ChangeSource,
  Follower,
  FollowerNote,
  Following,
  NotificationReport,
} from '../../keys/repository/index.ts';
import type { Connection, MustExist, WriteOptions, WriteWork } from '../connection.ts';
import { Mutex } from '../mutex.ts';
import { retry } from '../retry.ts';
import { olderStore, pendingFeatures, tableNamesOf } from '../features.ts';
import { newestSchema } from '../migrations.ts';
import { type PostgresAddress, readPostgresUrl } from '../postgres-address.ts';
import {
  isLockTimeout,
  isLost,
  isPostgresFailure,
  isSerializationFailure,
  openPool,
  postgresError,
} from './postgres-pool.ts';
import { ReceivedChanges, PostgresListener, TRUST_MS } from './postgres-listener.ts';
import {
  announceChange,
  isFollowed,
  lockWriters,
  ownTables,
  notesOf,
  writeNote,
  migratePostgres,
  type PostgresMigration,
  requireOwner,
  requireOwnTables,
  requirePostgres,
  requireSearchPath,
  versionOf,
} from './postgres-schema.ts';
import { type FeatureTables, TABLE_NAMES, type Tables } from '../tables.ts';

/** How many lost connections are replaced before it counts as an error, since several can break while idle. */
const MAX_RETRIES = 5;
/** The longest wait of a migration for others, and the longest time of each of its steps. */
const MIGRATION_WAIT_MS = 60_000;
const MIGRATION_STEP_MS = 600_000;
/** The longest pause between two checks whether all have confirmed a change, in milliseconds. */
const MAX_FOLLOWED_MS = 16;

interface Parts {
  db: Kysely<Tables>;
  received: ReceivedChanges;
  location: string;
  created: boolean;
  features: readonly FeatureTables[];
  writeWaitMs: number;
  config: PoolConfig;
}

/** An open PostgreSQL store, which programs can share: one writes at a time, and all are notified of each change. */
export class PostgresConnection implements Connection {
  readonly dialect = 'postgres';
  readonly location: string;
  readonly created: boolean;
  readonly features: readonly FeatureTables[];
  readonly #db: Kysely<Tables>;
  readonly #received: ReceivedChanges;
  readonly #writeWaitMs: number;
  readonly #config: PoolConfig;
  /** Waiting writers must not use up all connections, which are also needed to check keys. */
  readonly #mutex = new Mutex();

  private constructor({ db, received, location, created, features, writeWaitMs, config }: Parts) {
    this.features = features;
    this.#db = db;
    this.#received = received;
    this.location = location;
    this.created = created;
    this.#writeWaitMs = writeWaitMs;
    this.#config = config;
  }

  /** Opens the store at a URL, or creates it unless it must exist. @throws KeysError USAGE, STORE_… */
  static async open(
    url: string,
    {
      lockWaitMs,
      writeWaitMs = lockWaitMs,
      statementMs,
      mustExist,
      features,
      changes,
    }: {
      lockWaitMs: number;
      writeWaitMs?: number;
      statementMs?: number | undefined;
      mustExist: MustExist;
      features: readonly FeatureTables[];
      changes?: ChangeSource | undefined;
    },
  ): Promise<PostgresConnection> {
    const { location, schema, owner, config } = readPostgresUrl(url);
    const timedConfig = withTimeouts(config, lockWaitMs, statementMs);
    const generation = { number: 0 };
    const db = await openPool(timedConfig, generation);
    try {
      const version = await findVersion(db, { location, schema, owner, features });
      if (version === undefined && mustExist)
        throw new KeysError('STORE_UNAVAILABLE', `The key store ${location} does not exist. Check the address.`);
      const pending = version === newestSchema() ? await pendingFeatures(db, features) : features;
      const isCurrent = version === newestSchema() && pending.length === 0;
      if (version !== undefined && !isCurrent && mustExist === 'migrated') throw olderStore(location, version, pending);
      if (version !== undefined && !isCurrent) await requireOwner(db, { location, version, pending });
      const created = !isCurrent && (await migrate(timedConfig, { location, schema, features }));
      const renewPool = () => void (generation.number += 1);
      const source = changes ?? new PostgresListener(timedConfig, location);
      const received = new ReceivedChanges({ source, renewPool });
      return new PostgresConnection({ db, received, location, created, features, writeWaitMs, config: timedConfig });
    } catch (error) {
      await db.destroy();
      throw postgresError(error, location);
    }
  }

  /** A listener for changes of the store at a URL, for other processes. @throws KeysError USAGE */
  static changesOf(url: string, lockWaitMs: number): ChangeSource {
    const { location, config } = readPostgresUrl(url);
    return new PostgresListener(withTimeouts(config, lockWaitMs), location);
  }

  /** True if there is a store at a URL. @throws KeysError USAGE, STORE_… */
  static async exists(url: string, lockWaitMs: number): Promise<boolean> {
    const { config, ...address } = readPostgresUrl(url);
    const db = await openPool(withTimeouts(config, lockWaitMs));
    try {
      return (await findVersion(db, { ...address, features: [] })) !== undefined;
    } catch (error) {
      throw postgresError(error, address.location);
    } finally {
      await db.destroy();
    }
  }

  async run<Result>(work: (db: Kysely<Tables>) => Promise<Result>): Promise<Result> {
    this.#requireAnswers();
    try {
      return await retryLost(() => work(this.#db));
    } catch (error) {
      throw postgresError(error, this.location);
    }
  }

  async write<Result>(work: WriteWork<Result>, { counts = false }: WriteOptions = {}): Promise<Result> {
    this.#requireAnswers();
    try {
      if (counts) return (await this.#retryWrite(work)).result;
      const locked: WriteWork<Result> = async (transaction, keysChanged) => {
        await lockWriters(transaction);
        return work(transaction, keysChanged);
      };
      const { result, change } = await this.#mutex.run(this.#writeWaitMs, () => this.#retryWrite(locked));
      if (change !== undefined) await this.#followed(change);
      return result;
    } catch (error) {
      throw postgresError(error, this.location);
    }
  }

  isFailure(error: unknown): boolean {
    return isPostgresFailure(error);
  }

  revision(): number | undefined {
    return this.#received.revision();
  }

  changesReceived(): number | undefined {
    return this.#received.changesReceived();
  }

  keysChangedSince(revision: number): readonly string[] | 'any' {
    return this.#received.keysChangedSince(revision);
  }

  watchHearing(report: NotificationReport): void {
    this.#received.watchHearing(report);
  }

  async follow(follower: Follower): Promise<Following> {
    const id = randomUUID();
    return {
      ...(await this.#received.follow(follower)),
      note: (text) => this.run((db) => writeNote(db, id, text)),
    };
  }

  notes(): Promise<FollowerNote[]> {
    return this.run(notesOf);
  }

  async vacuum(): Promise<void> {
    const timeouts = { statement_timeout: 0, query_timeout: 0 };
    const db = await openPool({ ...this.#config, ...timeouts, max: 1 });
    try {
      for (const table of [...TABLE_NAMES, ...tableNamesOf(this.features)])
        await sql`vacuum (analyze) ${sql.table(table)}`.execute(db);
    } catch (error) {
      throw postgresError(error, this.location);
    } finally {
      await db.destroy();
    }
  }

  async close(): Promise<void> {
    await this.#received.close();
    await this.#db.destroy();
  }

  /** Fails at once while the server is known not to answer, so that requests do not each wait for the timeout. */
  #requireAnswers(): void {
    const silence = this.#received.silence();
    if (silence) throw silence;
  }

  /**
   * Resolves once no other process accepts a key in its state before a change: each process has confirmed the change,
   * or no longer trusts its memory, which happens after `TRUST_MS` without news.
   */
  async #followed(change: number): Promise<void> {
    const end = performance.now() + TRUST_MS;
    for (let waitMs = 1; performance.now() < end; waitMs = Math.min(2 * waitMs, MAX_FOLLOWED_MS)) {
      if (await isFollowed(this.#db, change).catch(() => false)) return;
      await delay(waitMs);
    }
  }

  async #retryWrite<Result>(work: WriteWork<Result>): Promise<{ result: Result; change: number | undefined }> {
    const deadline = performance.now() + this.#writeWaitMs;
    let changed: string[] | undefined;
    let committing = false;
    const transact = () =>
      this.#db
        .transaction()
        .setIsolationLevel('read committed')
        .execute(async (transaction) => {
          [changed, committing] = [undefined, false];
          const result = await work(transaction, (ids) => {
            changed ??= [];
            for (const id of ids) changed.push(id);
          });
          // Announced even for new keys, which recipients do not know yet.
          const change = changed ? await announceChange(transaction) : undefined;
          committing = true;
          return { result, change };
        });
    const attempt = async () => {
      try {
        // If the answer to a commit is lost, the commit may have succeeded, and repeating it could make the change
        // twice.
        return await retryLost(transact, () => !committing);
      } finally {
        if (committing && changed) this.#received.changed(changed);
      }
    };
    return retry(attempt, {
      isRetryable: (error) => (isSerializationFailure(error) || isLockTimeout(error)) && performance.now() <= deadline,
    });
  }
}

/** The version of a store that is safe to use; undefined if there is none. @throws KeysError STORE_… */
function findVersion(
  db: Kysely<Tables>,
  { location, schema, owner, features }: Omit<PostgresAddress, 'config'> & { features: readonly FeatureTables[] },
): Promise<number | undefined> {
  return retryLost(async () => {
    await requirePostgres(db, location);
    if (schema !== undefined) await requireSearchPath(db, location, schema);
    await requireOwnTables(db, { location, owner, tables: ownTables(features) });
    return versionOf(db, location);
  });
}

async function migrate(config: PoolConfig, migration: PostgresMigration): Promise<boolean> {
  const timeouts = {
    lock_timeout: MIGRATION_WAIT_MS,
    statement_timeout: MIGRATION_STEP_MS,
    query_timeout: MIGRATION_STEP_MS,
  };
  const db = await openPool({ ...config, ...timeouts, idle_in_transaction_session_timeout: MIGRATION_WAIT_MS, max: 1 });
  try {
    return await migratePostgres(db, migration);
  } finally {
    await db.destroy();
  }
}

/** The shortest connection timeout, even if writes must not wait. */
const MIN_CONNECT_MS = 2000;

/** Makes each timeout a little longer than the one that should fire first; the server's fire before the client's. */
function withTimeouts(config: PoolConfig, lockWaitMs: number, statementMs = lockWaitMs + 1000): PoolConfig {
  const { connectionTimeoutMillis = Math.max(lockWaitMs, MIN_CONNECT_MS), statement_timeout: statement = statementMs } =
    config;
  return {
    ...config,
    connectionTimeoutMillis,
    lock_timeout: lockWaitMs,
    statement_timeout: statement,
    query_timeout: Number(statement) + 1000,
    // A process that was cut off during a change must not keep the write lock.
    idle_in_transaction_session_timeout: Number(statement) + 2000,
  };
}

function retryLost<Result>(work: () => Promise<Result>, isAllowed: () => boolean = () => true): Promise<Result> {
  return retry(work, {
    isRetryable: (error, attempts) => isLost(error) && isAllowed() && attempts <= MAX_RETRIES,
    delayMs: (attempts) => 10 * attempts,
  });
}
