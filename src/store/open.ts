import type { KeyObject } from 'node:crypto';
import type { Kysely } from 'kysely';
import { unsupportedNode } from '../../bin/node-version.js';
import { debug, debugTimed, isDebugged, KeysError } from '../keys/basics/index.ts';
import type { ChangeSource, KeyRepository, SchemaDifference } from '../keys/repository/index.ts';
import type { LimitStore } from '../limits/index.ts';
import { readAuditKey } from './audit-log.ts';
import {
  type Connection,
  connectionOver,
  debuggedConnection,
  type MustExist,
  type StoreTimer,
  timedConnection,
} from './connection.ts';
import { missingStore } from './errors.ts';
import { createKeyRepository } from './key-repository.ts';
import { type FeatureInStore, portsOf } from './port-of-store.ts';
import { MEMORY, storeLocation } from './location.ts';
import { isPostgresUrl, readPostgresUrl } from './postgres-address.ts';
import type { FeatureTables, Tables } from './tables.ts';
import { createLimitStore, type StoreClock } from './limit-store.ts';

/** How long a command waits for its turn to write, in milliseconds, since dozens can write at once. */
const LOCK_WAIT_MS = 8000;

/** An open key store. */
export interface Store {
  repository: KeyRepository;
  /** The used parts of keys' limits. */
  limits: LimitStore;
  /** The absolute path, or the URL without its password. */
  location: string;
  /** True if this program just created the store. */
  created: boolean;
  /** False if the store does not exist: this one is empty and refuses changes. */
  exists: boolean;
  /** See `OpenKeys.schemaDifferences`. */
  schemaDifferences(): Promise<SchemaDifference[] | 'unknown'>;
  /** See `OpenKeys.compact`. */
  compact(leastShare: number): AsyncGenerator<void, number | null>;
  /** See `OpenKeys.settingProblems`. */
  settingProblems(): Promise<string[]>;
  close(): Promise<void>;
}

/** The store to open, and how. */
export interface OpenStoreOptions {
  /**
   * A path, the URL of a PostgreSQL database, or `:memory:` for a new store in the memory of this process. Default:
   * `SVC_API_DATABASE`, or a file in the user's data folder.
   */
  database?: string;
  /** The environment variables. Default: those of the process. */
  env?: NodeJS.ProcessEnv;
  /** The longest wait for other writers, in milliseconds. Default: 8000. */
  lockWaitMs?: number;
  /** The longest wait of a change for other writers, in milliseconds. Default: `lockWaitMs`. */
  writeWaitMs?: number;
  /**
   * How much of that wait SQLite itself takes at a time, which blocks the event loop, in milliseconds. Default: 0,
   * which servers need. With many writing processes, a higher value gets a turn sooner.
   */
  busyTimeoutMs?: number;
  /** The action for a missing store: create it (the default), fail, or use an empty one that refuses changes. */
  ifMissing?: 'create' | 'fail' | 'empty';
  /** Called with the duration of each store operation. */
  timer?: StoreTimer | undefined;
}

/** Parts of a store that its opener brings. */
export interface StoreParts {
  /** The parts of features in it. Default: none, for the core alone. */
  readonly features?: readonly FeatureInStore[];
  /** The clock for limits and leases: see `createLimitStore`. */
  readonly leaseClock?: StoreClock;
  /** The source of changes for a PostgreSQL store. Default: the store listens itself. */
  readonly changes?: ChangeSource | undefined;
}

/** Opens the key store. @throws KeysError STORE_… */
export async function openStore(
  { ifMissing = 'create', timer, ...options }: OpenStoreOptions = {},
  parts: StoreParts = {},
): Promise<Store> {
  if (ifMissing === 'empty' && !(await storeExists(options))) return emptyStore(options, parts);
  const auditKey = readAuditKey(options.env ?? process.env);
  const { features, changes } = parts;
  const opened = await openConnection({ ...options, mustExist: ifMissing !== 'create', features, changes });
  const connection = timer ? timedConnection(opened, timer) : opened;
  return { ...storeOver(connection, parts, auditKey), compact: (leastShare) => compact(opened, leastShare) };
}

/** A store over an open connection. */
export function storeOver(
  connection: Connection,
  { features = [], leaseClock }: StoreParts,
  auditKey?: KeyObject,
): Omit<Store, 'compact'> {
  return {
    repository: createKeyRepository(connection, auditKey, portsOf(features), leaseClock),
    limits: createLimitStore(connection, leaseClock),
    location: connection.location,
    created: connection.created,
    exists: true,
    schemaDifferences: () => connection.run(differencesOn(connection)),
    settingProblems: () => findSettingProblems(connection),
    close: () => connection.close(),
  };
}

/** A missing store for a dry run: an empty one in memory that refuses changes. */
async function emptyStore(
  { database, env = process.env }: OpenStoreOptions,
  { features = [] }: StoreParts,
): Promise<Store> {
  const place = storeLocation(database, env);
  const isPostgres = isPostgresUrl(place);
  const location = isPostgres ? readPostgresUrl(place).location : place;
  debug('there is no store yet', () => ({ store: location }));
  requireSupportedNode();
  const { PrivateFile } = await import('./sqlite/private-file.ts');
  const missing = () => Promise.reject(missingStore(location));
  const connection = connectionOver(await PrivateFile.empty(location, features), { write: missing, follow: missing });
  const store = storeOver(connection, { features });
  return {
    ...store,
    repository: { ...store.repository, kind: isPostgres ? 'postgres' : 'sqlite', check: missing },
    exists: false,
    schemaDifferences: async () => [],
    compact() {
      throw missingStore(location);
    },
  };
}

/** A host CLI chooses the version of Node: on an old one, the driver would end the process without a message. */
function requireSupportedNode(): void {
  const unsupported = unsupportedNode();
  if (unsupported !== undefined) throw new KeysError('NODE_UNSUPPORTED', `${unsupported}.`);
}

async function* compact(connection: Connection, leastShare: number): AsyncGenerator<void, number | null> {
  if (connection.location === MEMORY) return 0;
  if (connection.dialect === 'sqlite') return yield* (await import('./compact.ts')).compactFile(connection, leastShare);
  // Otherwise the server does so continuously by itself.
  if (leastShare === 0) await connection.vacuum!();
  return null;
}

async function findSettingProblems(connection: Connection): Promise<string[]> {
  if (connection.dialect === 'sqlite')
    return (await import('./sqlite/store-access.ts'))
      .placeWarnings(connection.location)
      .map(({ problem, remedy }) => `${problem}. ${remedy}.`);
  const { settingProblems } = await import('./postgres/postgres-schema.ts');
  return (await connection.run(settingProblems)).map(
    ({ setting, consequence, remedy }) => `the database server has ${setting}: ${consequence}. ${remedy}`,
  );
}

function differencesOn({ dialect, features }: Connection) {
  return async (db: Kysely<Tables>): Promise<SchemaDifference[] | 'unknown'> =>
    dialect === 'postgres'
      ? (await import('./postgres/postgres-schema.ts')).postgresSchemaDifferences(db, features)
      : (await import('./sqlite/sqlite-schema.ts')).sqliteSchemaDifferences(db, features);
}

/** True if the store exists. Never creates one. @throws KeysError STORE_… if that cannot be found out */
export async function storeExists({ database, env = process.env }: OpenStoreOptions): Promise<boolean> {
  const place = storeLocation(database, env);
  if (place === MEMORY) return true;
  if (!isPostgresUrl(place)) return (await import('./sqlite/sqlite-file.ts')).storeFileExists(place);
  const { PostgresConnection } = await import('./postgres/postgres-connection.ts');
  return PostgresConnection.exists(place, LOCK_WAIT_MS);
}

/**
 * A listener for changes of a store on behalf of other processes of this machine; undefined for a file, which each
 * process checks itself.
 * @throws KeysError USAGE
 */
export async function listenForChanges({
  database,
  env = process.env,
  lockWaitMs = LOCK_WAIT_MS,
}: Pick<OpenStoreOptions, 'database' | 'env' | 'lockWaitMs'>): Promise<ChangeSource | undefined> {
  const location = storeLocation(database, env);
  if (!isPostgresUrl(location)) return undefined;
  const { PostgresConnection } = await import('./postgres/postgres-connection.ts');
  return PostgresConnection.changesOf(location, lockWaitMs);
}

/** Opens the database of a store. Loads only the driver that it needs. @throws KeysError USAGE, STORE_… */
export async function openConnection({
  database,
  env = process.env,
  lockWaitMs = LOCK_WAIT_MS,
  writeWaitMs = lockWaitMs,
  busyTimeoutMs = 0,
  statementMs,
  mustExist = false,
  features = [],
  changes,
}: Omit<OpenStoreOptions, 'ifMissing' | 'timer'> & {
  /**
   * The longest time of a statement in PostgreSQL, in milliseconds, unless the URL sets one. Default: like the wait.
   */
  statementMs?: number;
  mustExist?: MustExist;
  /** The features that get tables. Default: none. */
  features?: readonly FeatureTables[] | undefined;
  changes?: ChangeSource | undefined;
}): Promise<Connection> {
  requireSupportedNode();
  const location = storeLocation(database, env);
  const options = { lockWaitMs, writeWaitMs, busyTimeoutMs, mustExist, features };
  const open = async (): Promise<Connection> => {
    if (location === MEMORY) return (await import('./sqlite/memory-store.ts')).openMemoryStore(features);
    return isPostgresUrl(location)
      ? (await import('./postgres/postgres-connection.ts')).PostgresConnection.open(location, {
          ...options,
          statementMs,
          changes,
        })
      : (await import('./sqlite/sqlite-connection.ts')).SqliteConnection.open(location, options);
  };
  if (!isDebugged()) return open();
  const { newestSchema } = await import('./migrations.ts');
  const opened = await debugTimed('the store was opened', open, (connection) => ({
    store: isPostgresUrl(location) ? readPostgresUrl(location).location : location,
    dialect: connection?.dialect,
    schema: connection && newestSchema(),
    isNew: connection?.created,
  }));
  return debuggedConnection(opened);
}
