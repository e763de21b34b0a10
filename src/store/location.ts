import { homedir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import { KeysError, printable } from '../keys/basics/index.ts';
import { isPostgresUrl } from './postgres-address.ts';

/** SQLite's name for a store in the memory of a process. */
export const MEMORY = ':memory:';

/**
 * The location of the store: `database`, or `SVC_API_DATABASE`, or `svc-api/keys.sqlite` in the user's data folder (XDG
 * Base Directory: `XDG_DATA_HOME` if it is absolute, otherwise `~/.local/share`).
 * @returns an absolute path, `MEMORY`, or the URL of a PostgreSQL database, which can contain a password
 * @throws KeysError USAGE
 */
export function storeLocation(database: string | undefined, env: NodeJS.ProcessEnv): string {
  const given = database ?? (env['SVC_API_DATABASE'] || undefined);
  if (given === undefined) return join(dataFolder(env), 'svc-api', 'keys.sqlite');
  if (given.trim() === '' || given.includes('\0')) {
    throw new KeysError('USAGE', 'The path of the key store is empty. Pass --database <path>, or leave it out.');
  }
  if (isPostgresUrl(given) || given === MEMORY) return given;
  const scheme = /^([a-z][a-z0-9+.-]+):\/\//i.exec(given)?.[1];
  if (scheme !== undefined) {
    throw new KeysError(
      'USAGE',
      `A key store at a ${scheme} address is not supported. Pass the path of a file, or a postgres:// URL.`,
    );
  }
  return resolve(given);
}

function dataFolder(env: NodeJS.ProcessEnv): string {
  const folder = env['XDG_DATA_HOME'];
  return folder && isAbsolute(folder) ? folder : join(homeFolder(env), '.local', 'share');
}

/** The home folder of the user. It must be absolute: a store in the working directory would not be found again. */
function homeFolder(env: NodeJS.ProcessEnv): string {
  const home = env['HOME'] ?? knownHome();
  if (home !== undefined && isAbsolute(home)) return home;
  const reason = home === undefined ? 'this user has none' : `HOME is "${printable(home)}"`;
  throw new KeysError(
    'USAGE',
    `The key store has no default path: it would be in the home folder, but ${reason}. Set HOME, or pass --database <path>.`,
  );
}

function knownHome(): string | undefined {
  try {
    return homedir();
  } catch {
    return undefined;
  }
}
