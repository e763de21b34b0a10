import { unsupportedNode } from '../../bin/node-version.js';
import { KeysError } from '../keys/errors.ts';
import type { KeyRepository } from '../keys/repository.ts';
import { createKeyRepository } from './key-repository.ts';
import { storeLocation } from './location.ts';

export interface Store {
  repository: KeyRepository;
  /** The absolute path. */
  location: string;
  /** Whether there was no store before. */
  created: boolean;
  close(): Promise<void>;
}

export interface OpenStoreOptions {
  /** A path; see `storeLocation` for what holds without it. */
  database?: string | undefined;
  env?: NodeJS.ProcessEnv;
  /** How long to wait while another process writes, in milliseconds. */
  lockWait?: number;
  /** Makes no store where there is none: that is an error then. */
  mustExist?: boolean;
}

/** Opens the key store, and makes it where there is none yet, unless it must exist. @throws KeysError STORE_… */
export async function openStore({
  database,
  env = process.env,
  lockWait = 5000,
  mustExist = false,
}: OpenStoreOptions = {}): Promise<Store> {
  // A host CLI picks the Node: on an old one the driver would end the process without a word.
  const unsupported = unsupportedNode();
  if (unsupported !== undefined) throw new KeysError('STORE_UNAVAILABLE', unsupported);
  const { SqliteConnection } = await import('./sqlite.ts');
  const connection = await SqliteConnection.open(storeLocation(database, env), { lockWait, mustExist });
  return {
    repository: createKeyRepository(connection),
    location: connection.location,
    created: connection.created,
    close: () => connection.close(),
  };
}
