import { isPostgresUrl, storeLocation } from '../../../store/whole-store.ts';
import { failureBy, type Finding, type InspectOptions, skipped } from './finding.ts';

/** Checks a store in any state, without changing anything. */
export async function inspectStore(
  database: string | undefined,
  env: NodeJS.ProcessEnv,
  options: InspectOptions,
): Promise<Finding[]> {
  let place: string;
  try {
    place = storeLocation(database, env);
  } catch (error) {
    return [failureBy('STORE', error), ...skipped(['SCHEMA', 'AUDIT_LOG', 'CLOCK'], 'There is no store.')];
  }
  if (isPostgresUrl(place)) return (await import('./inspect-postgres.ts')).inspectPostgres(place, options);
  return (await import('./inspect-sqlite.ts')).inspectSqlite(place, options);
}
