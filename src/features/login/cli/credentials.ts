import { hash, randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { givesRights, KeysError, printable, processUser } from '../../../keys/basics/index.ts';
import { readSecret } from '../../../keys/secret/index.ts';

/*
 * The keys that this user keeps for servers, in `svc-api/credentials/<host>-<8 hex digits>.json` of the data folder, of
 * mode 0600 in a folder of 0700. Each server has its own file, so that two logins at the same time do not collide.
 */

/** Modes for the owner only. */
const OWN_FOLDER = 0o700;
const OWN_FILE = 0o600;
const OTHERS = 0o077;

/**
 * The kept key of a server; undefined if there is none.
 * @throws KeysError CREDENTIALS_INVALID if its file is unreadable, damaged, or accessible to other users
 */
export function keptKey(server: string, env: NodeJS.ProcessEnv): string | undefined {
  const path = pathFor(server, env);
  if (path === undefined) return undefined;
  let text: string;
  try {
    text = readOwnFile(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw orUnusable(error, path);
  }
  const kept = parse(text);
  if (kept?.server === server && typeof kept.key === 'string' && readSecret(kept.key)) return kept.key;
  throw invalid(`${shown(path)} does not hold a key for ${server}. Remove it, and log in again`);
}

/** The servers that keys are kept for. @throws KeysError CREDENTIALS_INVALID */
export function keptServers(env: NodeJS.ProcessEnv): string[] {
  const folder = credentialsFolder(env);
  if (folder === undefined) return [];
  try {
    const files = readdirSync(folder).filter((name) => name.endsWith('.json'));
    const servers = files.map((name) => parse(readOwnFile(join(folder, name)))?.server);
    return servers.filter((server) => typeof server === 'string');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw orUnusable(error, folder);
  }
}

/**
 * Keeps a key for a server, replacing an earlier one.
 * @returns the path of its file
 * @throws KeysError CREDENTIALS_INVALID if it cannot be written
 */
export function keepKey(server: string, key: string, env: NodeJS.ProcessEnv): string {
  const path = placeFor(server, env);
  writeFile(path, `${JSON.stringify({ server, key }, null, 2)}\n`, (temporary) => renameSync(temporary, path));
  return path;
}

/**
 * Checks that a key could be kept, before one is requested.
 * @throws KeysError CREDENTIALS_INVALID
 */
export function requirePlace(server: string, env: NodeJS.ProcessEnv): void {
  writeFile(placeFor(server, env), '', (temporary) => rmSync(temporary));
}

/** Writes a temporary file beside the path, and passes it on. @throws KeysError CREDENTIALS_INVALID */
function writeFile(path: string, text: string, done: (temporary: string) => void): void {
  const temporary = `${path}.${randomBytes(8).toString('hex')}`;
  let isThere = false;
  try {
    mkdirSync(join(path, '..'), { recursive: true, mode: OWN_FOLDER });
    const descriptor = openSync(temporary, 'wx', OWN_FILE);
    isThere = true;
    try {
      fchmodSync(descriptor, OWN_FILE);
      writeFileSync(descriptor, text);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    done(temporary);
  } catch (error) {
    if (isThere) rmSync(temporary, { force: true });
    throw orUnusable(error, path);
  }
}

/**
 * Removes the kept key of a server.
 * @returns true if there was one
 * @throws KeysError CREDENTIALS_INVALID if it cannot be removed
 */
export function forgetKey(server: string, env: NodeJS.ProcessEnv): boolean {
  const path = pathFor(server, env);
  if (path === undefined) return false;
  try {
    rmSync(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw orUnusable(error, path);
  }
}

function readOwnFile(path: string): string {
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stat = fstatSync(descriptor);
    const user = processUser();
    if (!stat.isFile()) throw invalid(`${shown(path)} is not a regular file. Remove it, and log in again`);
    if ((user !== undefined && stat.uid !== user) || givesRights(stat, OTHERS))
      throw invalid(
        `${shown(path)} can be read by other users, who may have its key. Delete that key, and log in again`,
      );
    return readFileSync(descriptor, 'utf8');
  } finally {
    closeSync(descriptor);
  }
}

function parse(text: string): { server?: unknown; key?: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

function placeFor(server: string, env: NodeJS.ProcessEnv): string {
  const path = pathFor(server, env);
  if (path === undefined) throw invalid('The key cannot be stored: this user has no home folder. Set HOME');
  return path;
}

/** The path of a server's kept key; undefined for a user without a home folder. */
function pathFor(server: string, env: NodeJS.ProcessEnv): string | undefined {
  const folder = credentialsFolder(env);
  const host = new URL(server).hostname.replaceAll(/[^0-9A-Za-z.-]/g, '');
  const name = `${host}-${hash('sha256', server).slice(0, 8)}.json`;
  return folder && join(folder, name);
}

function credentialsFolder(env: NodeJS.ProcessEnv): string | undefined {
  const folder = dataFolder(env);
  return folder && join(folder, 'svc-api', 'credentials');
}

/** The user's data folder (XDG Base Directory): `XDG_DATA_HOME` if it is absolute, otherwise `~/.local/share`. */
function dataFolder(env: NodeJS.ProcessEnv): string | undefined {
  const folder = env['XDG_DATA_HOME'];
  if (folder && isAbsolute(folder)) return folder;
  const home = env['HOME'] ?? knownHome();
  return home !== undefined && isAbsolute(home) ? join(home, '.local', 'share') : undefined;
}

function knownHome(): string | undefined {
  try {
    return homedir();
  } catch {
    return undefined;
  }
}

function shown(path: string): string {
  return `The file ${printable(path, 200)}`;
}

function orUnusable(error: unknown, path: string): KeysError {
  if (error instanceof KeysError) return error;
  const { code = 'unknown' } = error as NodeJS.ErrnoException;
  return invalid(`${shown(path)} cannot be used (${code}). Check it and its folder`, { cause: error });
}

function invalid(message: string, options?: ErrorOptions): KeysError {
  return new KeysError('CREDENTIALS_INVALID', `${message}.`, options);
}
