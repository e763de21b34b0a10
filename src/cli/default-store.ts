import { isAbsolute, join } from 'node:path';
import type { Config } from '@oclif/core/interfaces';
import { KeysError } from '../keys/errors.ts';

/**
 * The key store that a host CLI has chosen for its users, by `"oclif": { "svc-api": { "database": … } }` in its
 * package.json: a path in its data folder, an absolute path, or a postgres:// URL.
 * @returns an absolute path or a URL; undefined if the host leaves it to svc-api
 * @throws KeysError HOST_INVALID that names the host and the setting
 */
export function hostDatabase({ pjson, dataDir, name }: Pick<Config, 'pjson' | 'dataDir' | 'name'>): string | undefined {
  const settings = (pjson.oclif as Record<string, unknown>)['svc-api'];
  if (settings === undefined) return undefined;
  const invalid = (setting: string, problem: string) =>
    new KeysError('HOST_INVALID', `In the package.json of ${name}, oclif["svc-api"]${setting} ${problem}`);
  if (typeof settings !== 'object' || settings === null || Array.isArray(settings))
    throw invalid('', 'must be an object, such as { "database": "keys.sqlite" }.');
  const { database, ...others } = settings as Record<string, unknown>;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw invalid(`["${unknown}"]`, 'is not a setting. The only one is "database".');
  if (database === undefined) return undefined;
  if (typeof database !== 'string' || database.trim() === '' || database.includes('\0'))
    throw invalid('.database', "must be a path in the CLI's data folder, an absolute path, or a postgres:// URL.");
  if (isAbsolute(database) || /^[a-z][a-z0-9+.-]+:\/\//i.test(database)) return database;
  if (isAbsolute(dataDir)) return join(dataDir, database);
  throw new KeysError(
    'USAGE',
    `The key store has no place: the data folder of ${name} is "${dataDir}", which is relative. ` +
      'Set XDG_DATA_HOME to an absolute path, or pass --database <path>.',
  );
}
