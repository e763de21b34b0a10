import { type Dialect, Kysely, PostgresDialect, type PostgresPoolClient } from 'kysely';
import type { PoolClient, PoolConfig } from 'pg';
import { KeysError } from '../../keys/errors.ts';
import { isBroken } from './postgres-errors.ts';
import type { Tables } from '../tables.ts';

/** Loads the driver, which only those have who need it. @throws KeysError STORE_UNAVAILABLE */
export async function loadDriver(): Promise<typeof import('pg')> {
  try {
    return await import('pg');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new KeysError(
      'STORE_UNAVAILABLE',
      'A key store on PostgreSQL needs the package "pg", which is not installed. Run "npm install pg" where svc-api is installed.',
      { cause: error },
    );
  }
}

/** A database to ask, over connections that are made when they are needed. */
export async function openPool(config: PoolConfig): Promise<Kysely<Tables>> {
  const { Pool } = await loadDriver();
  const pool = new Pool({ ...config, allowExitOnIdle: true, keepAlive: true });
  // Without a listener, a connection that is lost while nobody uses it would end the process.
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

/** A connection that does not go back to the others after it was lost, or has not answered. */
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
