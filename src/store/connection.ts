import { type Dialect, Kysely, type KyselyPlugin } from 'kysely';
import { debug, debugTimed, isTraced, millisecondsSince, trace } from '../keys/basics/index.ts';
import type {
  Follower,
  FollowerNote,
  Following,
  NotificationReport,
  RepositoryWriteOptions,
} from '../keys/repository/index.ts';
import type { DialectName, FeatureTables, KeyRow, Tables } from './tables.ts';

export type { DialectName } from './tables.ts';

/** True if the store must exist when it is opened; `migrated` if it also must need no migration. */
export type MustExist = boolean | 'migrated';

/** Work for one transaction. It passes the ids of changed and deleted keys to `keysChanged`. */
export type WriteWork<Result> = (
  transaction: Kysely<Tables>,
  keysChanged: (ids: readonly string[]) => void,
) => Promise<Result>;

/** Options of a write transaction. */
export type WriteOptions = Pick<RepositoryWriteOptions, 'revokes' | 'counts'>;

/** The row of the key that has, or once had, a secret; then with the public id of that former secret. */
export type KeyRowBySecret = KeyRow & { rotated_public_id?: string };

/** The result of a search by digest: the row of the key, if there is one, and the rows of its parent keys. */
export interface FoundRow {
  row: KeyRowBySecret | undefined;
  ancestors: readonly KeyRow[];
}

/** An open database of any dialect, for the repository. Its errors are meant for users. */
export interface Connection {
  readonly dialect: DialectName;
  /** The absolute path, or the URL without its password. */
  readonly location: string;
  /** True if opening it created the store. */
  readonly created: boolean;
  /** The installed features with tables in it. */
  readonly features: readonly FeatureTables[];
  /** Runs `work` outside a transaction, to read. @throws KeysError STORE_… */
  run<Result>(work: (db: Kysely<Tables>) => Promise<Result>): Promise<Result>;
  /**
   * Runs `work` in one transaction, exclusive of other writers, unless it only counts in PostgreSQL. `work` can run
   * several times, with earlier attempts rolled back.
   * @throws KeysError STORE_…
   */
  write<Result>(work: WriteWork<Result>, options?: WriteOptions): Promise<Result>;
  /**
   * Finds the key that has, or once had, a secret with this digest; undefined if that takes waiting or fails: then use
   * `run`.
   */
  findByDigest?(digest: string): FoundRow | undefined;
  /** Resolves if a file has all of its pages. @throws KeysError STORE_… */
  checkWhole?(): Promise<void>;
  /** True for a failure of the database itself, not of a statement that it refuses. */
  isFailure(error: unknown): boolean;
  /** See `KeyRepository.revision`. */
  revision(): number | undefined;
  /** See `KeyRepository.keysChangedSince`. */
  keysChangedSince(revision: number): readonly string[] | 'any';
  /**
   * A number that grows with notifications that the audit log has grown; undefined if this process gets none. Reading
   * it does not query the store.
   */
  changesReceived?(): number | undefined;
  /** See `KeyRepository.watchHearing`. */
  watchHearing(report: NotificationReport): void;
  /** See `KeyRepository.follow`. */
  follow?(follower: Follower): Promise<Following>;
  /** The notes of all followers. */
  notes?(): Promise<FollowerNote[]>;
  /**
   * Lets the database server reclaim space and update its statistics: until it does so by itself, searches among many
   * new keys take several times as long. Files use `compactFile` instead.
   */
  vacuum?(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Kinds of store operations: finding the key of a secret, reading, and writing (including the wait for other writers).
 */
const STORE_OPERATIONS = ['find', 'read', 'write'] as const;
export type StoreOperation = (typeof STORE_OPERATIONS)[number];

/** Called with the operation, its duration in seconds, and whether it failed. */
export type StoreTimer = (operation: StoreOperation, seconds: number, failed: boolean) => void;

/** A connection that forwards to another one, except for the given members. */
export function connectionOver(connection: Connection, others: Partial<Connection>): Connection {
  const { dialect, location, created, features } = connection;
  return {
    dialect,
    location,
    created,
    features,
    run: (work) => connection.run(work),
    write: (work, options) => connection.write(work, options),
    isFailure: (error) => connection.isFailure(error),
    checkWhole: async () => connection.checkWhole?.(),
    revision: () => connection.revision(),
    changesReceived: () => connection.changesReceived?.(),
    keysChangedSince: (revision) => connection.keysChangedSince(revision),
    watchHearing: (report) => connection.watchHearing(report),
    follow: (follower) => connection.follow!(follower),
    notes: async () => (await connection.notes?.()) ?? [],
    vacuum: async () => connection.vacuum?.(),
    close: () => connection.close(),
    ...others,
  };
}

/** A connection that reports the duration of its operations. */
export function timedConnection(connection: Connection, report: StoreTimer): Connection {
  const since = (began: number) => (performance.now() - began) / 1000;
  const timed = async <Result>(operation: StoreOperation, work: Promise<Result>): Promise<Result> => {
    const began = performance.now();
    let failed = true;
    try {
      const result = await work;
      failed = false;
      return result;
    } finally {
      report(operation, since(began), failed);
    }
  };
  return connectionOver(connection, {
    run: (work) => timed('read', connection.run(work)),
    write: (work, options) => timed('write', connection.write(work, options)),
    ...(connection.findByDigest && {
      findByDigest: (digest) => {
        const began = performance.now();
        const found = connection.findByDigest!(digest);
        report('find', since(began), false);
        return found;
      },
    }),
  });
}

/** A connection that logs its transactions, and reads outside of them, at level debug. */
export function debuggedConnection(connection: Connection): Connection {
  const counted = <Result>(message: string, run: (plugin: KyselyPlugin) => Promise<Result>): Promise<Result> => {
    const rows = { read: 0, changed: 0 };
    return debugTimed(
      message,
      () => run(rowCounter(rows)),
      () => ({ rows: rows.read, ...(message === CHANGED && { changed: rows.changed }) }),
    );
  };
  return connectionOver(connection, {
    run: (work) => counted('the store was read', (counter) => connection.run((db) => work(db.withPlugin(counter)))),
    write: (work, options) =>
      counted(CHANGED, (counter) =>
        connection.write((transaction, ...more) => work(transaction.withPlugin(counter), ...more), options),
      ),
    ...(connection.findByDigest && {
      findByDigest: (digest) => {
        const began = performance.now();
        const found = connection.findByDigest!(digest);
        debug('the store was asked for the key of a secret', () => ({
          isFound: found?.row !== undefined,
          durationMs: millisecondsSince(began),
        }));
        return found;
      },
    }),
    close: () =>
      debugTimed(
        'the store was closed',
        () => connection.close(),
        () => ({}),
      ),
  });
}

const CHANGED = 'a transaction ended';

/** Counts the rows that statements return and change. Repeated attempts of a transaction count again. */
function rowCounter(rows: { read: number; changed: number }): KyselyPlugin {
  return {
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => {
      rows.read += result.rows.length;
      rows.changed += Number(result.numAffectedRows ?? 0);
      return result;
    },
  };
}

/** A database that logs its statements at level trace, with placeholders in place of values. */
export function tracedKysely(dialect: Dialect): Kysely<Tables> {
  if (!isTraced()) return new Kysely<Tables>({ dialect });
  return new Kysely<Tables>({
    dialect,
    log: ({ level, query: { sql }, queryDurationMillis }) =>
      trace(sql, {
        ...(level === 'error' && { failed: true }),
        durationMs: Math.round(queryDurationMillis * 1000) / 1000,
      }),
  });
}
