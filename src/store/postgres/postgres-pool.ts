import { type Dialect, type Kysely, PostgresDialect, type PostgresPoolClient } from 'kysely';
import type { PoolClient, PoolConfig } from 'pg';
import { debug, isPackageMissing, KeysError, rethrow } from '../../keys/basics/index.ts';
import { tracedKysely } from '../connection.ts';
import { type Cause, driverCodeOf, storeError, takenError } from '../errors.ts';
import type { Tables } from '../tables.ts';

const UNREACHABLE = 'cannot be reached. Check its address, and that the database server is running';
const STOPPED = 'was cut off by its database server. Try again in a moment';
const SLOW = 'did not answer in time. Try again in a moment';
const LOCKED = 'is locked by another process. Try again in a moment';
const UNTRUSTED = 'cannot be reached: the certificate of its server cannot be verified. Check sslmode and sslrootcert';
const POOLER_OPTIONS =
  'cannot be opened: a connection pooler refuses "schema" and PGOPTIONS. Leave them out, and set the search path of ' +
  'its user: alter role … set search_path = …, pg_temp';
const POOLER_PARAMETER =
  'cannot be opened: a connection pooler refuses start-up parameters. Give the address of the server itself, or set ' +
  'in PgBouncer: ignore_startup_parameters = lock_timeout, statement_timeout, idle_in_transaction_session_timeout';

/** Codes of PostgreSQL (appendix A of its manual), of Node's sockets and TLS, and those in `CODES_BY_MESSAGE`. */
const CAUSES: readonly Cause[] = [
  ['POOLER_OPTIONS', 'STORE_UNAVAILABLE', POOLER_OPTIONS],
  ['POOLER_PARAMETER', 'STORE_UNAVAILABLE', POOLER_PARAMETER],
  ['08', 'STORE_UNAVAILABLE', STOPPED],
  ['25006', 'STORE_READONLY', 'is on a read-only server. Give the address of the primary'],
  ['28', 'STORE_UNAVAILABLE', 'cannot be opened: its server refuses the user or the password. Check both'],
  ['3D000', 'STORE_UNAVAILABLE', 'cannot be opened: its server has no such database. Create it, or check the address'],
  ['3F000', 'STORE_UNAVAILABLE', 'cannot be opened: its database has no such schema. Create it, or check the address'],
  ['40', 'STORE_LOCKED', LOCKED],
  [
    '42501',
    'STORE_READONLY',
    'cannot be changed: its database user lacks the rights. Connect as the owner of its tables',
  ],
  ['53100', 'STORE_FULL', 'cannot grow: the disk of its server is full. Make room and try again'],
  [
    '53300',
    'STORE_UNAVAILABLE',
    'cannot be opened: its server has no connection left. Lower pool_size or raise max_connections',
  ],
  ['55P03', 'STORE_LOCKED', LOCKED],
  ['57014', 'STORE_UNAVAILABLE', SLOW],
  ['57P', 'STORE_UNAVAILABLE', STOPPED],
  ['XX00', 'STORE_CORRUPT', 'is damaged. Restore it from a backup'],
  ['ECONNREFUSED', 'STORE_UNAVAILABLE', UNREACHABLE],
  ['ENOTFOUND', 'STORE_UNAVAILABLE', UNREACHABLE],
  ['EAI_AGAIN', 'STORE_UNAVAILABLE', UNREACHABLE],
  ['EHOSTUNREACH', 'STORE_UNAVAILABLE', UNREACHABLE],
  ['ENETUNREACH', 'STORE_UNAVAILABLE', UNREACHABLE],
  ['ETIMEDOUT', 'STORE_UNAVAILABLE', UNREACHABLE],
  ['ENOENT', 'STORE_UNAVAILABLE', UNREACHABLE],
  ['EACCES', 'STORE_UNAVAILABLE', UNREACHABLE],
  ['ECONNRESET', 'STORE_UNAVAILABLE', STOPPED],
  ['EPIPE', 'STORE_UNAVAILABLE', STOPPED],
  ['DEPTH_ZERO_SELF_SIGNED', 'STORE_UNAVAILABLE', UNTRUSTED],
  ['SELF_SIGNED', 'STORE_UNAVAILABLE', UNTRUSTED],
  ['UNABLE_TO_', 'STORE_UNAVAILABLE', UNTRUSTED],
  ['CERT_', 'STORE_UNAVAILABLE', UNTRUSTED],
  ['ERR_TLS_CERT', 'STORE_UNAVAILABLE', UNTRUSTED],
  ['22P02', 'STORE_FAILED', 'cannot hold a value that another program has written, such as an id that is not a UUID'],
  ['NO_TLS', 'STORE_UNAVAILABLE', 'cannot be reached: sslmode asks for encryption, which its server does not support'],
];

/** Errors identified by their message alone, or by a pooler's code 08P01, each with a code of its own. */
const CODES_BY_MESSAGE: readonly (readonly [message: RegExp, code: string])[] = [
  [
    /^(Connection terminated due to connection timeout|timeout exceeded when trying to connect|timeout expired)/,
    'ETIMEDOUT',
  ],
  [/^(Connection terminated|Client has encountered a connection error|Client was closed)/, 'ECONNRESET'],
  [/^Query read timeout/, '57014'],
  [/^The server does not support SSL/, 'NO_TLS'],
  [/^unsupported (startup parameter: options|startup parameter in options|options)/, 'POOLER_OPTIONS'],
  [/^unsupported startup parameter/, 'POOLER_PARAMETER'],
  [/^(SASL|client password|Password)/, '28P01'],
];

/** Turns an error of PostgreSQL, or of the connection to it, into one for users. */
export function postgresError(error: unknown, location: string): Error {
  return takenError(takenColumn(error), error) ?? storeError(withCode(error), location, CAUSES);
}

/** True if the connection was lost, so that another one may succeed. Uncommitted changes were rolled back. */
export function isLost(error: unknown): boolean {
  return /^(08|57P0[12]|ECONNRESET|EPIPE)/.test(driverCodeOf(withCode(error)));
}

/** True for a failure of the database, not of a statement that is wrong or breaks a rule of a table. */
export function isPostgresFailure(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return 'severity' in error ? !/^(2[23]|42)/.test(driverCodeOf(error)) : isLost(error) || isSilence(error);
}

/** True if there was no answer at all, neither from the server nor from the network. */
export function isSilence(error: unknown): boolean {
  return !('severity' in (error as object)) && /^(ETIMEDOUT|57014)/.test(driverCodeOf(withCode(error)));
}

/** True if the connection is, or could be, unusable after this error. */
function isBroken(error: unknown): boolean {
  return isLost(error) || !('severity' in (error as object));
}

/** True if a lock, such as that of writers, was not available in time. */
export function isLockTimeout(error: unknown): boolean {
  return driverCodeOf(error) === '55P03';
}

/** True if a transaction was rolled back because of concurrent ones, so that it can be retried. */
export function isSerializationFailure(error: unknown): boolean {
  return /^40(001|P01)$/.test(driverCodeOf(error));
}

function takenColumn(error: unknown): string | undefined {
  if (driverCodeOf(error) !== '23505') return undefined;
  const { constraint } = error as { constraint?: string };
  if (constraint === 'api_keys_by_previous_digest') return 'previous_digest';
  return constraint === 'api_keys_pkey' ? 'id' : /^api_keys_(.*)_key$/.exec(constraint ?? '')?.[1];
}

function withCode(error: unknown): unknown {
  if (!(error instanceof Error) || !['', '08P01'].includes(driverCodeOf(error))) return error;
  const code = CODES_BY_MESSAGE.find(([message]) => message.test(error.message))?.[1];
  return code === undefined ? error : Object.assign(new Error(error.message, { cause: error }), { code });
}

/** Loads the driver, an optional dependency. @throws KeysError STORE_UNAVAILABLE */
export async function loadDriver(): Promise<typeof import('pg')> {
  try {
    return await import('pg').catch(rethrow);
  } catch (error) {
    if (!isPackageMissing(error)) throw error;
    throw new KeysError(
      'STORE_UNAVAILABLE',
      'A key store on PostgreSQL needs the package "pg", which is not installed. ' +
        'Run "npm install pg" where svc-api is installed.',
      { cause: error },
    );
  }
}

/** Counts how often all connections were discarded. Those opened under an earlier number are not used again. */
interface Generation {
  number: number;
}

/** A database over a pool of connections, which are opened on demand. */
export async function openPool(config: PoolConfig, generation: Generation = { number: 0 }): Promise<Kysely<Tables>> {
  const { Client, Pool } = await loadDriver();
  class NumberedClient extends Client {
    readonly generation = generation.number;
  }
  const isOutdated = (client: unknown) => (client as NumberedClient).generation !== generation.number;
  const pool = new Pool({ ...config, Client: NumberedClient, allowExitOnIdle: true, keepAlive: true });
  // Without listeners, an idle connection that is lost would end the process.
  pool.on('error', () => {});
  pool.on('connect', (client) => {
    client.on('error', () => {});
    debug('a connection to PostgreSQL was opened', () => {
      const { host, port, database } = client as unknown as Record<string, unknown>;
      return { host, port, database };
    });
  });
  const dialect: Dialect = new PostgresDialect({
    pool: {
      options: pool.options,
      async connect() {
        for (;;) {
          const client = await pool.connect();
          if (!isOutdated(client)) return guarded(client, isOutdated);
          client.release(true);
        }
      },
      end: () => pool.end(),
    },
  });
  return tracedKysely(dialect);
}

/** A connection that is removed from the pool on release if it was lost, did not answer, or was discarded. */
function guarded(client: PoolClient, isOutdated: (client: PoolClient) => boolean): PostgresPoolClient {
  let broken: Error | undefined;
  const query = async (text: string, parameters: readonly unknown[]) => {
    if (broken) throw broken;
    try {
      return await client.query(text, [...parameters]);
    } catch (error) {
      if (isBroken(error)) broken = error as Error;
      throw error;
    }
  };
  return {
    query: query as unknown as PostgresPoolClient['query'],
    release: (destroy) => client.release(destroy || broken || isOutdated(client)),
  };
}
