import { type Dialect, Kysely, type KyselyPlugin } from 'kysely';
import { debug, debugTimed, isTraced, millisecondsSince, trace } from '../keys/steps.ts';
import type { Connection } from './connection.ts';
import type { Tables } from './tables.ts';

/** What the store is asked: for the key of a secret, at once; to read; to write, with the wait for other writers. */
export const STORE_OPERATIONS = ['find', 'read', 'write'] as const;
export type StoreOperation = (typeof STORE_OPERATIONS)[number];

/** Is told what the store was asked, how long it took, in seconds, and whether it failed. */
export type StoreTimer = (operation: StoreOperation, seconds: number, failed: boolean) => void;

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
  const { dialect, location, created } = connection;
  return {
    dialect,
    location,
    created,
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
    revision: () => connection.revision(),
    keysChangedSince: (revision) => connection.keysChangedSince(revision),
    watchHearing: (listener) => connection.watchHearing(listener),
    close: () => connection.close(),
  };
}

/** A connection that logs its transactions, and what is read outside of them, at level debug. */
export function debuggedConnection(connection: Connection): Connection {
  const counted = <Result>(message: string, run: (plugin: KyselyPlugin) => Promise<Result>): Promise<Result> => {
    const rows = { read: 0, changed: 0 };
    return debugTimed(
      message,
      () => run(new RowCounter(rows)),
      () => ({ rows: rows.read, ...(message === CHANGED && { changed: rows.changed }) }),
    );
  };
  const timed: Connection = {
    dialect: connection.dialect,
    location: connection.location,
    created: connection.created,
    run: (work) => counted('the store was read', (counter) => connection.run((db) => work(db.withPlugin(counter)))),
    write: (work, options) =>
      counted(CHANGED, (counter) =>
        connection.write((transaction, ...more) => work(transaction.withPlugin(counter), ...more), options),
      ),
    revision: () => connection.revision(),
    keysChangedSince: (revision) => connection.keysChangedSince(revision),
    watchHearing: (listener) => connection.watchHearing(listener),
    close: () =>
      debugTimed(
        'the store was closed',
        () => connection.close(),
        () => ({}),
      ),
  };
  if (!connection.findByDigest) return timed;
  timed.findByDigest = (digest) => {
    const began = performance.now();
    const found = connection.findByDigest!(digest);
    debug('the store was asked for the key of a secret', () => ({
      isFound: found?.row !== undefined,
      durationMs: millisecondsSince(began),
    }));
    return found;
  };
  return timed;
}

const CHANGED = 'a transaction ended';

/** Counts the rows that statements answer and change. What a transaction does anew counts anew. */
class RowCounter implements KyselyPlugin {
  readonly #rows: { read: number; changed: number };

  constructor(rows: { read: number; changed: number }) {
    this.#rows = rows;
  }

  transformQuery: KyselyPlugin['transformQuery'] = ({ node }) => node;

  transformResult: KyselyPlugin['transformResult'] = async ({ result }) => {
    this.#rows.read += result.rows.length;
    this.#rows.changed += Number(result.numAffectedRows ?? 0);
    return result;
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
