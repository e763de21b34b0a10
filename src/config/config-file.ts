import { accessSync, type BigIntStats, closeSync, constants, fstatSync, lstatSync, openSync, readSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { debug, givesRights, KeysError, printable, processUser } from '../keys/basics/index.ts';

/** The location of the configuration. */
export interface ConfigLocation {
  /** An absolute path. */
  readonly path: string;
  /** True if the user named the file, so that it must exist. */
  readonly isNamed: boolean;
}

/**
 * The location of the configuration: `file`, or `SVC_API_CONFIG`, or `svc-api/svc-api.yaml` in the user's configuration
 * folder (XDG Base Directory: `XDG_CONFIG_HOME` if it is absolute, otherwise `~/.config`).
 * @returns undefined for a user without a home folder
 * @throws KeysError USAGE
 */
export function configLocation(file: string | undefined, env: NodeJS.ProcessEnv): ConfigLocation | undefined {
  const given = file ?? (env['SVC_API_CONFIG'] || undefined);
  if (given === undefined) {
    const folder = configFolder(env);
    if (folder !== undefined) return { path: join(folder, 'svc-api', 'svc-api.yaml'), isNamed: false };
    debug('there is no configuration', () => ({ reason: 'the user has no home folder' }));
    return undefined;
  }
  if (given.trim() === '' || given.includes('\0'))
    throw new KeysError('USAGE', 'The path of the configuration is empty. Pass --config <path>, or leave it out.');
  return { path: resolve(given), isNamed: true };
}

function configFolder(env: NodeJS.ProcessEnv): string | undefined {
  const folder = env['XDG_CONFIG_HOME'];
  if (folder && isAbsolute(folder)) return folder;
  const home = env['HOME'] ?? knownHome();
  return home !== undefined && isAbsolute(home) ? join(home, '.config') : undefined;
}

function knownHome(): string | undefined {
  try {
    return homedir();
  } catch {
    return undefined;
  }
}

/** The contents of a configuration file. */
export interface ConfigFile {
  /** An absolute path. */
  readonly path: string;
  readonly text: string;
}

const MAX_BYTES = 4 * 1024 * 1024;
const ALL_WRITE = 0o002;

/**
 * Reads the configuration file synchronously.
 * @returns undefined if it is missing and optional
 * @throws KeysError CONFIG_UNAVAILABLE; CONFIG_INSECURE if other users could have written it; CONFIG_INVALID if it is
 * too large, or not UTF-8
 */
export function readConfigFile(location: ConfigLocation): ConfigFile | undefined {
  const file = readFile(location);
  const found = file ? 'the configuration was read' : 'there is no configuration';
  debug(found, () => ({ path: location.path, ...(file && { characters: file.text.length }) }));
  return file;
}

function readFile({ path, isNamed }: ConfigLocation): ConfigFile | undefined {
  let descriptor: number;
  try {
    requireOwnLink(path);
    // Without O_NONBLOCK, opening a pipe would wait for its writer.
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    if (!isNamed && (isMissing(error) || isOutOfReach(path))) return undefined;
    throw asUnavailable(error, path);
  }
  try {
    const stat = fstatSync(descriptor, { bigint: true });
    if (!stat.isFile()) throw unavailable(path, 'is not a regular file');
    requireOwn(stat, path);
    if (givesRights(stat, ALL_WRITE))
      throw insecure(path, 'can be written by every user of this machine', 'Check it, and run chmod o-w on it');
    return { path, text: decode(readBytes(descriptor, path), path) };
  } catch (error) {
    throw asUnavailable(error, path);
  } finally {
    closeSync(descriptor);
  }
}

/** True if a file, or its folder, does not exist. */
function isMissing(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '');
}

/** True if this user cannot enter the parent of the configuration folder, such as when HOME is that of another user. */
function isOutOfReach(path: string): boolean {
  try {
    accessSync(dirname(dirname(path)), constants.X_OK);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EACCES';
  }
}

/** A link of another user could be redirected at any time. */
function requireOwnLink(path: string): void {
  const stat = lstatSync(path, { bigint: true });
  if (stat.isSymbolicLink()) requireOwn(stat, path);
}

function requireOwn({ uid }: BigIntStats, path: string): void {
  const user = processUser();
  if (user === undefined || uid === 0n || uid === BigInt(user)) return;
  throw insecure(path, `belongs to another user (${uid})`, 'Let it belong to root, or to the user of this process');
}

function readBytes(descriptor: number, path: string): Buffer {
  const buffer = Buffer.allocUnsafe(MAX_BYTES + 1);
  let length = 0;
  for (let read = -1; read !== 0 && length < buffer.length; length += read)
    read = readSync(descriptor, buffer, length, buffer.length - length, null);
  if (length > MAX_BYTES)
    throw new KeysError('CONFIG_INVALID', `${shown(path)} is larger than ${MAX_BYTES / 1024 / 1024} MiB.`);
  return buffer.subarray(0, length);
}

function decode(bytes: Uint8Array, path: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    throw new KeysError('CONFIG_INVALID', `${shown(path)} is not UTF-8 text. Save it as UTF-8.`, { cause: error });
  }
}

function shown(path: string): string {
  return `The configuration ${printable(path, 200)}`;
}

function insecure(path: string, reason: string, remedy: string): KeysError {
  return new KeysError('CONFIG_INSECURE', `${shown(path)} ${reason}, who could give keys more access. ${remedy}.`);
}

function unavailable(path: string, reason: string, options?: ErrorOptions): KeysError {
  const remedy = 'Check --config and SVC_API_CONFIG';
  return new KeysError('CONFIG_UNAVAILABLE', `${shown(path)} ${reason}. ${remedy}.`, options);
}

function asUnavailable(error: unknown, path: string): unknown {
  if (error instanceof KeysError) return error;
  const { code = 'unknown' } = error as NodeJS.ErrnoException;
  const reason = isMissing(error) ? 'does not exist' : `can't be read (${code})`;
  return unavailable(path, reason, { cause: error });
}
