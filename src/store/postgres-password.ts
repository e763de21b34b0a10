import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { isKeysError, KeysError, readSecretFile } from '../keys/basics/index.ts';

/** The fields of a line before the password. */
export type PasswordTarget = readonly [host: string, port: string, database: string, user: string];

const FIELD = String.raw`((?:[^:\\]|\\.)*)`;
const LINE = new RegExp(`^${`${FIELD}:`.repeat(4)}(.*)$`);

/**
 * Finds the password of a connection in libpq's password file: PGPASSFILE, or .pgpass in the home. We read it, since pg
 * warns on stderr when it does, and its next version does not.
 * @throws KeysError STORE_UNAVAILABLE if the file of PGPASSFILE is missing, or other users can read the file
 */
export function findPassword(target: PasswordTarget, env: NodeJS.ProcessEnv): string | undefined {
  const path = env['PGPASSFILE'] || defaultPath(env);
  if (path === undefined) return undefined;
  for (const line of read(path).split(/\r?\n/)) {
    const [, ...fields] = LINE.exec(line) ?? [];
    const password = fields.pop();
    if (password === undefined || line.startsWith('#')) continue;
    if (fields.every((field, at) => field === '*' || unescaped(field) === target[at])) return unescaped(password);
  }
  return undefined;
}

function defaultPath({ HOME, APPDATA }: NodeJS.ProcessEnv): string | undefined {
  const [folder, ...names] = process.platform === 'win32' ? [APPDATA, 'postgresql', 'pgpass.conf'] : [HOME, '.pgpass'];
  const path = folder && join(folder, ...names);
  return path && existsSync(path) ? path : undefined;
}

/** Others than svc-api use the file, which can list many servers. */
const MAX_BYTES = 1 << 20;

function read(path: string): string {
  const words = { what: 'The password file', remedy: 'Correct it, or set PGPASSWORD.' };
  try {
    const { text } = readSecretFile(path, words, MAX_BYTES);
    return Buffer.from(text, 'latin1').toString();
  } catch (error) {
    throw isKeysError(error) ? new KeysError('STORE_UNAVAILABLE', error.message, { cause: error }) : error;
  }
}

function unescaped(text: string): string {
  return text.replaceAll(/\\(.)/g, '$1');
}
