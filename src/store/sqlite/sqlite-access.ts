import { chmodSync, lstatSync, realpathSync, type Stats, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { KeysError } from '../../keys/errors.ts';
import { createFolder, createStoreFile, sideFilesOf } from './sqlite-file.ts';

const OTHERS_WRITE = 0o022;
const ALL_WRITE = 0o002;
const ALL_ACCESS = 0o007;
const OWNER_ACCESS = 0o700;
const STICKY = 0o1000;

/** Creates the file of a store. Nothing is left where others could replace it. @returns whether the file is new */
export function createStore(path: string): boolean {
  createFolder(dirname(path));
  requireSecureFolder(dirname(path));
  return createStoreFile(path);
}

/**
 * Refuses a store that other users could write or replace: they could give themselves keys. The store belongs to the
 * user of the process or to root; root also opens that of another user in this user's own folder. A store that all can
 * read, such as a restored copy, is made private.
 * @param options.repairs whether that is done
 * @throws KeysError STORE_INSECURE; an error of the file system
 */
export function requireSecureFile(path: string, { repairs = true } = {}): void {
  const folder = requireSecureFolder(dirname(path));
  const user = process.geteuid?.();
  if (!folder || user === undefined) return;
  const belongsToOthers = ({ uid }: Stats) => uid !== user && uid !== 0 && !(user === 0 && uid === folder.uid);

  const entry = lstatSync(path);
  if (belongsToOthers(entry)) throw belongsTo(entry.uid, path);
  if (entry.isSymbolicLink()) return requireSecureFile(realpathSync(path), { repairs });
  if ((entry.mode & OTHERS_WRITE) !== 0) throw writableByOthers(entry, path);
  // SQLite removes them when the last program closes the store, which may be just now.
  const sideFiles = sideFilesOf(path).filter((side) => {
    const stat = lstatSync(side, { throwIfNoEntry: false });
    if (!stat) return false;
    if (belongsToOthers(stat) || !stat.isFile() || (stat.mode & OTHERS_WRITE) !== 0) throw foreignSideFile(side, path);
    return true;
  });
  if (repairs && entry.uid === user && (entry.mode & ALL_ACCESS) !== 0)
    for (const file of [path, ...sideFiles]) makePrivate(file, entry.mode);
}

/**
 * Requires that others can replace neither what is in a folder nor the folder itself. In a sticky one, such as /tmp,
 * they cannot replace what is not theirs.
 * @returns what is known of the folder; nothing on Windows, which has no modes
 * @throws KeysError STORE_INSECURE; an error of the file system
 */
function requireSecureFolder(folder: string): Stats | undefined {
  const user = process.geteuid?.();
  if (user === undefined) return undefined;
  const stat = statSync(folder);
  const belongsToOthers = user !== 0 && stat.uid !== user && stat.uid !== 0;
  if (belongsToOthers) throw replaceable(folder, `belongs to another user (${stat.uid})`);
  const othersWrite = isOwnGroup(stat, user) ? ALL_WRITE : OTHERS_WRITE;
  if (isWritable(stat, othersWrite)) throw replaceable(folder, `can be written by others (mode ${modeOf(stat)})`);
  for (let above = dirname(folder); above !== dirname(above); above = dirname(above)) {
    const outer = statSync(above);
    if (isWritable(outer, ALL_WRITE)) throw replaceable(above, `can be written by others (mode ${modeOf(outer)})`);
  }
  return stat;
}

function isWritable({ mode }: Stats, by: number): boolean {
  return (mode & by) !== 0 && (mode & STICKY) === 0;
}

/** Whether a folder belongs to the group that many systems make for each user, with the user's number. */
function isOwnGroup({ gid }: Stats, user: number): boolean {
  return user !== 0 && gid === user && process.getegid?.() === user;
}

function makePrivate(path: string, mode: number): void {
  try {
    chmodSync(path, mode & OWNER_ACCESS);
  } catch {
    // Some file systems have no modes of their own.
  }
}

function modeOf({ mode }: Stats): string {
  return `0${(mode & 0o7777).toString(8)}`;
}

function belongsTo(owner: number, path: string): KeysError {
  const remedy = 'Run as that user, or choose another path';
  return new KeysError('STORE_INSECURE', `The key store ${path} belongs to another user (${owner}). ${remedy}.`);
}

function writableByOthers(stat: Stats, path: string): KeysError {
  const reason = `can be written by others (mode ${modeOf(stat)}), who may have given themselves keys`;
  return new KeysError('STORE_INSECURE', `The key store ${path} ${reason}. Check its keys, and run chmod 600 on it.`);
}

function replaceable(folder: string, reason: string): KeysError {
  const remedy = 'Run chmod go-w on it, or keep the store in a folder of its own';
  return new KeysError('STORE_INSECURE', `The folder ${folder} of the key store ${reason}. ${remedy}.`);
}

function foreignSideFile(side: string, path: string): KeysError {
  const reason = `${side} was put there by others, or they can write it, and it would be applied to the key store`;
  return new KeysError('STORE_INSECURE', `The key store ${path} cannot be opened: ${reason}. Check and remove it.`);
}
