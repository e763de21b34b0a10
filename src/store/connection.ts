import { type Dialect, Kysely, type KyselyPlugin } from 'kysely';
import { debug, debugTimed, isTraced, millisecondsSince, trace } from '../keys/basics/index.ts';
import {
  type Follower,
  type Following,
  type KnownEdge,
  LISTED_MS,
  type NotificationReport,
  type RepositoryWriteOptions,
  TELL_MS,
} from '../keys/repository/index.ts';
import type { DialectName, FeatureTables, KeyRow, Tables } from './tables.ts';

export type { DialectName } from './tables.ts';

/** Whether a store must exist when it is opened or, beyond that, need no migration. */
export type MustExist = boolean | 'migrated';

/** Work to do in one transaction. It calls `keysChanged` with the ids of those that it changes or deletes. */
export type WriteWork<Result> = (
  transaction: Kysely<Tables>,
  keysChanged: (ids: readonly string[]) => void,
) => Promise<Result>;

/** How to run a write transaction. */
export type WriteOptions = Pick<RepositoryWriteOptions, 'revokes' | 'counts'>;

/** The row of the key that has a secret, or had it once: then with the public id of that secret. */
export type KeyRowBySecret = KeyRow & { rotated_public_id?: string };

/** What was found by the digest of a secret: the row of its key, if there is one, and those of its parent keys. */
export interface FoundRow {
  row: KeyRowBySecret | undefined;
  ancestors: readonly KeyRow[];
}

/** An open database of any dialect, as the repository uses it. Its errors are meant for users. */
export interface Connection {
  readonly dialect: DialectName;
  /** The absolute path, or the URL without its password. */
  readonly location: string;
  /** Whether opening it has created the store. */
  readonly created: boolean;
  /** The features of this program whose tables it has. */
  readonly features: readonly FeatureTables[];
  /** Runs `work` outside a transaction, to read. @throws KeysError STORE_… */
  run<Result>(work: (db: Kysely<Tables>) => Promise<Result>): Promise<Result>;
  /**
   * Runs `work` in one transaction, exclusive of other writers, unless it only counts in PostgreSQL. It may run several
   * times, the earlier ones rolled back.
   * @throws KeysError STORE_…
   */
  write<Result>(work: WriteWork<Result>, options?: WriteOptions): Promise<Result>;
  /**
   * Finds the key that has a secret with this digest, or had it once; undefined where that takes waiting, or fails:
   * then `run` can.
   */
  findByDigest?(digest: string): FoundRow | undefined;
  /** Resolves where a file has all of its pages. @throws KeysError STORE_… */
  checkWhole?(): Promise<void>;
  /** See `KeyRepository.revision`. */
  revision(): number | undefined;
  /** See `KeyRepository.keysChangedSince`. */
  keysChangedSince(revision: number): readonly string[] | 'any';
  /**
   * A number that grows once this process has been told that the audit log has grown; undefined where it is not told.
   * Nobody is asked for that.
   */
  changesReceived?(): number | undefined;
  /** See `KeyRepository.watchHearing`. */
  watchHearing(report: NotificationReport): void;
  /** See `KeyRepository.follow`. */
  follow?(follower: Follower): Promise<Following>;
  /** Whom those who follow it have told of, each as it is now. */
  toldEdges?(): Promise<KnownEdge[]>;
  /**
   * Lets the database server find what space it can use again, and how its rows are best found: until it has done so by
   * itself, searches of many new keys take several times as long. A file has pages of its own: see `compactFile`.
   */
  vacuum?(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Edges as they are a time in milliseconds after a process has told of them, as far as they are still listed. Until it
 * is late to tell of them again, nothing says that they are otherwise.
 */
export function edgesAfter(edges: readonly KnownEdge[], toldMs: number): KnownEdge[] {
  const ageMs = Math.max(toldMs - 2 * TELL_MS, 0);
  return edges
    .map(({ leaseMs, restMs, lagMs, seenMs, ...edge }) => ({
      ...edge,
      leaseMs: Math.max(leaseMs - ageMs, 0),
      restMs: Math.max(restMs - ageMs, 0),
      // What changes is told to one that rests, which then asks.
      lagMs: restMs > ageMs ? lagMs : lagMs + ageMs,
      seenMs: seenMs + ageMs,
    }))
    .filter(({ seenMs }) => seenMs < LISTED_MS);
}

/** What the store is asked: for the key of a secret, at once; to read; to write, with the wait for other writers. */
const STORE_OPERATIONS = ['find', 'read', 'write'] as const;
export type StoreOperation = (typeof STORE_OPERATIONS)[number];

/** Is told what the store was asked, how long it took, in seconds, and whether it failed. */
export type StoreTimer = (operation: StoreOperation, seconds: number, failed: boolean) => void;

/** A connection that does as another one does, but for what is given. */
export function connectionOver(connection: Connection, others: Partial<Connection>): Connection {
  const { dialect, location, created, features } = connection;
  return {
    dialect,
    location,
    created,
    features,
    run: (work) => connection.run(work),
    write: (work, options) => connection.write(work, options),
    checkWhole: async () => connection.checkWhole?.(),
    revision: () => connection.revision(),
    changesReceived: () => connection.changesReceived?.(),
    keysChangedSince: (revision) => connection.keysChangedSince(revision),
    watchHearing: (report) => connection.watchHearing(report),
    follow: (follower) => connection.follow!(follower),
    toldEdges: async () => (await connection.toldEdges?.()) ?? [],
    vacuum: async () => connection.vacuum?.(),
    close: () => connection.close(),
    ...others,
  };
}

/** A connection of which it is known how long everything takes. */
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

/** A connection that logs its transactions, and what is read outside of them, at level debug. */
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

/** Counts the rows that statements answer and change. What a transaction does anew counts anew. */
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

/** A database whose statements are logged at level trace: as SQL with places for its values, never with these. */
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
