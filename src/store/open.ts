import { existsSync } from 'node:fs';
import { unsupportedNode } from '../../bin/node-version.js';
import { KeysError } from '../keys/errors.ts';
import type { KeyRepository } from '../keys/repository.ts';
import type { Connection } from './connection.ts';
import { createKeyRepository } from './key-repository.ts';
import { storeLocation } from './location.ts';
import { isPostgresUrl } from './postgres/postgres-address.ts';

/** How long a command waits while other processes write, in milliseconds: dozens may do so at once. */
const LOCK_WAIT_MS = 8000;

export interface Store {
  repository: KeyRepository;
  /** The absolute path, or the URL without its password. */
  location: string;
  /** Whether there was no store before. */
  created: boolean;
  close(): Promise<void>;
}

export interface OpenStoreOptions {
  /** A path, or the URL of a PostgreSQL database; see `storeLocation` for what holds without it. */
  database?: string | undefined;
  env?: NodeJS.ProcessEnv;
  /** How long to wait while another process writes, in milliseconds. Default: 8000. */
  lockWaitMs?: number | undefined;
  /** Makes no store where there is none: that is an error then. */
  mustExist?: boolean;
}

/** Opens the key store, and makes it where there is none yet, unless it must exist. @throws KeysError STORE_… */
export async function openStore(options: OpenStoreOptions = {}): Promise<Store> {
  const connection = await openConnection(options);
  return {
    repository: createKeyRepository(connection),
    location: connection.location,
    created: connection.created,
    close: () => connection.close(),
  };
}

/** Whether there is a store; none is made. @throws KeysError STORE_… where that can't be told */
export async function storeExists({
  database,
  env = process.env,
}: Pick<OpenStoreOptions, 'database' | 'env'>): Promise<boolean> {
  const place = storeLocation(database, env);
  if (!isPostgresUrl(place)) return existsSync(place);
  return (await import('./postgres/postgres-connection.ts')).PostgresConnection.exists(place, LOCK_WAIT_MS);
}

/** Opens the database of a store. Each driver is loaded only where it is needed. @throws KeysError STORE_… */
export async function openConnection({
  database,
  env = process.env,
  lockWaitMs = LOCK_WAIT_MS,
  mustExist = false,
}: OpenStoreOptions): Promise<Connection> {
  // A host CLI picks the Node: on an old one the driver would end the process without a word.
  const unsupported = unsupportedNode();
  if (unsupported !== undefined) throw new KeysError('STORE_UNAVAILABLE', unsupported);
  const place = storeLocation(database, env);
  const options = { lockWaitMs, mustExist };
  if (isPostgresUrl(place))
    return (await import('./postgres/postgres-connection.ts')).PostgresConnection.open(place, options);
  return (await import('./sqlite/sqlite-connection.ts')).SqliteConnection.open(place, options);
}
