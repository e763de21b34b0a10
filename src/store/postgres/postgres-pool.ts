import { type Dialect, Kysely, PostgresDialect, type PostgresPoolClient } from 'kysely';
import type { PoolClient, PoolConfig } from 'pg';
import { KeysError } from '../../keys/errors.ts';
import { isBroken } from './postgres-errors.ts';
import type { Tables } from '../tables.ts';

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

/** A database over a pool of connections, which are opened on demand. */
export async function openPool(config: PoolConfig): Promise<Kysely<Tables>> {
  const { Pool } = await loadDriver();
  const pool = new Pool({ ...config, allowExitOnIdle: true, keepAlive: true });
  // Without listeners, an idle connection that is lost would end the process.
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  const dialect: Dialect = new PostgresDialect({
    pool: {
      options: pool.options,
      connect: async () => guarded(await pool.connect()),
      end: () => pool.end(),
    },
  });
  return new Kysely<Tables>({ dialect });
}

/** A connection that leaves the pool on release after it was lost or did not answer. */
function guarded(client: PoolClient): PostgresPoolClient {
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
    release: (destroy) => client.release(destroy || broken),
  };
}
