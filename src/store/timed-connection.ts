import type { Connection } from './connection.ts';

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
