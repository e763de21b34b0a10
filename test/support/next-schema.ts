import { type Migration, MIGRATIONS } from '../../src/store/migrations.ts';
import { isPostgresUrl } from '../../src/store/postgres-address.ts';
import { changeDirectly, readDirectly } from './direct.ts';

/** Runs `work` as in a later version, with one more migration. */
export async function withNextSchema<Result>(migrate: Migration, work: () => Promise<Result>): Promise<Result> {
  const migrations = MIGRATIONS as Migration[];
  migrations.push(migrate);
  try {
    return await work();
  } finally {
    migrations.pop();
  }
}

/** Changes the schema version of a store, but not its tables. */
export async function setSchema(database: string, version: number): Promise<void> {
  const change = isPostgresUrl(database) ? 'update svc_api_schema set version =' : 'pragma user_version =';
  await changeDirectly(database, `${change} ${version}`);
}

/** The schema version of a store. */
export async function schemaOf(database: string): Promise<number> {
  const query = isPostgresUrl(database)
    ? 'select version from svc_api_schema'
    : 'select user_version as version from pragma_user_version';
  return Number((await readDirectly(database, query))[0]!['version']);
}
