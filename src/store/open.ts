import { existsSync } from 'node:fs';
import { unsupportedNode } from '../../bin/node-version.js';
import { KeysError } from '../keys/errors.ts';
import type { KeyRepository } from '../keys/repository.ts';
import type { Connection } from './connection.ts';
import { createKeyRepository } from './key-repository.ts';
import { storeLocation } from './location.ts';
import { isPostgresUrl } from './postgres/postgres-address.ts';

/** How long a command waits for other writers, of which there may be dozens. */
const LOCK_WAIT_MS = 8000;

/** An open key store. */
export interface Store {
  repository: KeyRepository;
  /** The absolute path, or the URL without its password. */
  location: string;
  /** Whether opening it has created the store. */
  created: boolean;
  close(): Promise<void>;
}

/** Which store to open, and how. */
export interface OpenStoreOptions {
  /** A path, or the URL of a PostgreSQL database. Default: `SVC_API_DATABASE`, or a file in the user's data folder. */
  database?: string | undefined;
  /** The environment variables. Default: those of the process. */
  env?: NodeJS.ProcessEnv;
  /** How long to wait for other writers, in milliseconds. Default: 8000. */
  lockWaitMs?: number | undefined;
  /** Fail if there is no store, instead of creating one. Default: false. */
  mustExist?: boolean;
}

/** Opens the key store, and creates it if there is none, unless it must exist. @throws KeysError USAGE, STORE_… */
export async function openStore(options: OpenStoreOptions = {}): Promise<Store> {
  const connection = await openConnection(options);
  return {
    repository: createKeyRepository(connection),
    location: connection.location,
    created: connection.created,
    close: () => connection.close(),
  };
}

/** Whether there is a store. Creates none. @throws KeysError USAGE, STORE_… if that cannot be told */
export async function storeExists({
  database,
  env = process.env,
}: Pick<OpenStoreOptions, 'database' | 'env'>): Promise<boolean> {
  const location = storeLocation(database, env);
  if (!isPostgresUrl(location)) return existsSync(location);
  return (await import('./postgres/postgres-connection.ts')).PostgresConnection.exists(location, LOCK_WAIT_MS);
}

/** Opens the database of a store. Loads only the driver that it needs. @throws KeysError USAGE, STORE_… */
export async function openConnection({
  database,
  env = process.env,
  lockWaitMs = LOCK_WAIT_MS,
  mustExist = false,
}: OpenStoreOptions): Promise<Connection> {
  // A host CLI picks the Node.js version: on an old one the driver would crash without a message.
  const unsupported = unsupportedNode();
  if (unsupported !== undefined) throw new KeysError('STORE_UNAVAILABLE', unsupported);
  const location = storeLocation(database, env);
  const options = { lockWaitMs, mustExist };
  if (isPostgresUrl(location))
    return (await import('./postgres/postgres-connection.ts')).PostgresConnection.open(location, options);
  return (await import('./sqlite/sqlite-connection.ts')).SqliteConnection.open(location, options);
}
