import { type Dialect, type Kysely, PostgresDialect, type PostgresPoolClient } from 'kysely';
import type { PoolClient, PoolConfig } from 'pg';
import { KeysError } from '../../keys/errors.ts';
import { debug } from '../../keys/steps.ts';
import { isBroken } from './postgres-errors.ts';
import type { Tables } from '../tables.ts';
import { tracedKysely } from '../timed-connection.ts';

/** Loads the driver, an optional dependency. @throws KeysError STORE_UNAVAILABLE */
export async function loadDriver(): Promise<typeof import('pg')> {
  try {
    return await import('pg');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new KeysError(
      'STORE_UNAVAILABLE',
      'A key store on PostgreSQL needs the package "pg", which is not installed. ' +
        'Run "npm install pg" where svc-api is installed.',
      { cause: error },
    );
  }
}

/** Counts how often the connections were given up. Those that were begun at another number are not used again. */
export interface Generation {
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

/** A connection that leaves the pool on release after it was lost, did not answer, or was given up. */
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
