import { randomBytes } from 'node:crypto';
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  realpathSync,
  rmSync,
  type Stats,
  statfsSync,
  statSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { givesRights, KeysError, printable, processUser } from '../../keys/basics/index.ts';
import { createStoreFile, sideFilesOf } from './sqlite-file.ts';

const OTHERS_WRITE = 0o022;
const ALL_WRITE = 0o002;
const ALL_ACCESS = 0o007;
const OWNER_ACCESS = 0o700;
const STICKY = 0o1000;

const IN_CONTAINERS = 'In a container, do that on the host, to the mounted folder';
const ACCEPTED = 'Or set SVC_API_STORE_MODE=shared, if you trust all users who can write there';

/** True if the operator trusts other users who can write the store (SVC_API_STORE_MODE). @throws KeysError USAGE */
export function isShared(): boolean {
  const mode = process.env['SVC_API_STORE_MODE'] || 'private';
  if (mode === 'private' || mode === 'shared') return mode === 'shared';
  const message = `SVC_API_STORE_MODE is "${printable(mode)}". Set it to "private" or "shared", or unset it.`;
  throw new KeysError('USAGE', message);
}

/**
 * Creates the file of a store. Other users must not be able to replace anything: an empty folder of this user is made
 * private.
 * @returns true if the file is new
 * @throws KeysError STORE_INSECURE, STORE_UNAVAILABLE; an error of the file system
 */
export function createStore(path: string): boolean {
  const folder = dirname(path);
  try {
    createFolder(folder);
    if (canBeMadePrivate(folder)) {
      chmodSync(folder, OWNER_ACCESS);
      // Another user may have put something there just before.
      if (readdirSync(folder).length > 0) throw new KeysError('STORE_INSECURE', foundInside(folder));
    }
    if (!isShared()) requireSecureFolder(path);
    return createStoreFile(path);
  } catch (error) {
    throw notWritable(folder, error) ?? error;
  }
}

/**
 * Creates the store's missing folders with mode 0700, one at a time, since the umask can deny access to the one just
 * created.
 */
function createFolder(folder: string): void {
  if (statSync(folder, { throwIfNoEntry: false })) return;
  createFolder(dirname(folder));
  try {
    mkdirSync(folder, { mode: 0o700 });
    chmodSync(folder, 0o700);
  } catch (error) {
    // Another process may have created it in between.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

/** True for an empty folder of this user that others can write. */
function canBeMadePrivate(folder: string): boolean {
  if (isShared()) return false;
  const stat = statSync(folder);
  return stat.uid === processUser() && isWritable(stat, OTHERS_WRITE) && readdirSync(folder).length === 0;
}

/** Why a store cannot be created at a path; undefined if it can. Nothing is changed. */
export function placeProblem(path: string): Error | undefined {
  const folder = dirname(path);
  try {
    const there = nearestFolder(folder);
    accessSync(there, constants.W_OK | constants.X_OK);
    if (!isShared() && !(there === folder && canBeMadePrivate(folder)))
      requireSecureFolder(there === folder ? path : join(there, 'new', 'store'), there);
    return undefined;
  } catch (error) {
    return notWritable(folder, error) ?? (error as Error);
  }
}

function nearestFolder(folder: string): string {
  return statSync(folder, { throwIfNoEntry: false }) ? folder : nearestFolder(dirname(folder));
}

/** The error for a folder that this user cannot write. */
function notWritable(folder: string, error: unknown): KeysError | undefined {
  const user = processUser();
  if (!['EACCES', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '') || user === undefined)
    return undefined;
  let there: string;
  try {
    there = nearestFolder(folder);
  } catch {
    return undefined; // A folder above cannot even be looked into.
  }
  const { uid } = statSync(there);
  const what = `The key store cannot be created: permission denied. This user (${user}) cannot write in the folder ${there}`;
  const remedy =
    uid === user
      ? `, which it owns. Run chmod 700 ${there}.`
      : there !== folder
        ? `. Choose another path, set HOME to the folder of this user, or run install -d -m 700 -o ${user} ${folder} as root.`
        : folder === '/'
          ? '. Choose another path.'
          : `, which belongs to the user ${uid}. Run chown ${user} ${folder} as root. ${IN_CONTAINERS}.`;
  return new KeysError('STORE_UNAVAILABLE', what + remedy, { cause: error });
}

/**
 * Refuses a store that other users could write or replace, to give themselves keys. It must belong to the user of the
 * process or to root; root also opens a store of another user in that user's own folder. A store readable by all, such
 * as a restored copy, is made private. SVC_API_STORE_MODE=shared turns these checks off.
 * @param options.repairs true to make a readable store private
 * @throws KeysError STORE_INSECURE; an error of the file system
 */
export function requireSecureFile(path: string, { repairs = true } = {}): void {
  const shared = isShared();
  const folder = shared ? statSync(dirname(path)) : requireSecureFolder(path);
  const user = processUser();
  if (!folder || user === undefined) return;
  const belongsToOthers = ({ uid }: Stats) =>
    !shared && uid !== user && uid !== 0 && !(user === 0 && uid === folder.uid);
  const othersWrite = (stat: Stats) => !shared && givesRights(stat, OTHERS_WRITE);

  const entry = lstatSync(path);
  if (belongsToOthers(entry)) throw belongsTo(entry.uid, path);
  if (entry.isSymbolicLink()) return requireSecureFile(realpathSync(path), { repairs });
  if (othersWrite(entry)) throw writableByOthers(entry, path);
  // SQLite may be removing them right now, as the last program closes the store.
  const sideFiles = sideFilesOf(path).filter((side) => {
    const stat = lstatSync(side, { throwIfNoEntry: false });
    if (!stat) return false;
    if (belongsToOthers(stat) || !stat.isFile() || othersWrite(stat)) throw foreignSideFile(side, path);
    return true;
  });
  if (repairs && !shared && entry.uid === user && givesRights(entry, ALL_ACCESS))
    for (const file of [path, ...sideFiles]) makePrivate(file, entry.mode);
}

/**
 * Requires that others can replace neither the contents of a folder nor the folder itself. In a sticky folder, such as
 * /tmp, they can only replace their own files.
 * @param path that of the store; the folder can be one above it if the others do not exist yet
 * @returns the folder's stat; undefined on Windows, which has no modes
 * @throws KeysError STORE_INSECURE; an error of the file system
 */
function requireSecureFolder(path: string, folder = dirname(path)): Stats | undefined {
  const user = processUser();
  if (user === undefined) return undefined;
  const stat = statSync(folder);
  const isOwnFolder = folder === dirname(path);
  const belongsToOthers = user !== 0 && stat.uid !== user && stat.uid !== 0;
  if (isOwnFolder && belongsToOthers)
    throw insecure(
      folder,
      `belongs to another user (${stat.uid})`,
      `Run chown ${user} ${folder} as root, or run as that user. ${IN_CONTAINERS}`,
    );
  const othersWrite = isOwnGroup(stat, user) ? ALL_WRITE : OTHERS_WRITE;
  if (isOwnFolder && isWritable(stat, othersWrite)) throw writableFolder(path, stat, user);
  for (let above = isOwnFolder ? dirname(folder) : folder; above !== dirname(above); above = dirname(above)) {
    const outer = statSync(above);
    if (isWritable(outer, ALL_WRITE))
      throw insecure(
        above,
        `can be written by others (mode ${modeOf(outer)}), who could replace the folder of the store`,
        `Run chmod +t ${above}: users can then replace only their own files there`,
      );
  }
  return stat;
}

function isWritable(stat: Stats, by: number): boolean {
  return givesRights(stat, by) && (stat.mode & STICKY) === 0;
}

/** True if a folder belongs to the group that many systems create for each user, with the user's number. */
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

/** True if the file system of a folder keeps the mode of a new file, or if that cannot be tried. */
function keepsModes(folder: string): boolean {
  const path = join(folder, `.svc-api-${randomBytes(8).toString('hex')}`);
  try {
    const file = openSync(path, 'wx', 0o600);
    try {
      return !givesRights(fstatSync(file), OTHERS_WRITE);
    } finally {
      closeSync(file);
      rmSync(path);
    }
  } catch {
    return true;
  }
}

function modeOf({ mode }: Stats): string {
  return `0${(mode & 0o7777).toString(8)}`;
}

function belongsTo(owner: number, path: string): KeysError {
  const remedy = `Run as that user, run chown ${processUser()} ${path} as root, or choose another path`;
  return new KeysError('STORE_INSECURE', `The key store ${path} belongs to another user (${owner}). ${remedy}.`);
}

function writableByOthers(stat: Stats, path: string): KeysError {
  if (!keepsModes(dirname(path))) return modeless(dirname(path));
  const reason = `can be written by others (mode ${modeOf(stat)}), who could have given themselves keys`;
  const remedy = `Check its keys, and run ${privateFiles(path)}`;
  return new KeysError('STORE_INSECURE', `The key store ${path} ${reason}. ${remedy}.`);
}

function writableFolder(path: string, stat: Stats, user: number): KeysError {
  const folder = dirname(path);
  const reason = `can be written by others (mode ${modeOf(stat)})`;
  if (!keepsModes(folder)) return modeless(folder);
  if (stat.uid !== user && user !== 0)
    return insecure(folder, reason, `Keep the store in a folder of its own in it, such as ${join(folder, 'svc-api')}`);
  const files = privateFiles(path);
  const command = `chmod 700 ${folder}${files === undefined ? '' : ` && ${files}`}`;
  return insecure(folder, reason, `Check its keys, if there are any, and run ${command}. ${IN_CONTAINERS}`);
}

/** The command that makes a store's files private, if others can write one. */
function privateFiles(path: string): string | undefined {
  const loose = [path, ...sideFilesOf(path), `${path}-reserve`].filter((file) => {
    const stat = lstatSync(file, { throwIfNoEntry: false });
    return stat?.isFile() && givesRights(stat, OTHERS_WRITE);
  });
  return loose.length === 0 ? undefined : `chmod 600 ${loose.join(' ')}`;
}

function modeless(folder: string): KeysError {
  return insecure(
    folder,
    'is on a file system without file modes, such as FAT, exFAT or an SMB share, so that all users can write it',
    'Keep the store on another file system',
  );
}

function foundInside(folder: string): string {
  return `The folder ${folder} of the key store was not empty when it was made private. Check the files in it and remove them.`;
}

function insecure(folder: string, reason: string, remedy: string): KeysError {
  return new KeysError('STORE_INSECURE', `The folder ${folder} of the key store ${reason}. ${remedy}. ${ACCEPTED}.`);
}

function foreignSideFile(side: string, path: string): KeysError {
  const reason = `another user created ${side} or can write it, and SQLite would apply it to the key store`;
  return new KeysError(
    'STORE_INSECURE',
    `The key store ${path} cannot be opened: ${reason}. Check that file and remove it.`,
  );
}

/** The file systems by network of Linux, by their numbers (statfs(2)). */
const NETWORK_FILE_SYSTEMS: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB'],
]);

/** A risk of a store's location, with its remedy, as sentences without a full stop. */
interface PlaceWarning {
  readonly problem: string;
  readonly remedy: string;
}

/**
 * Risks of a store's location: a network file system, or other users who can write it.
 * @param typeOf the number of a folder's file system
 */
export function placeWarnings(path: string, typeOf = (folder: string) => statfsSync(folder).type): PlaceWarning[] {
  const folder = dirname(realpathSync(path));
  const network = NETWORK_FILE_SYSTEMS.get(typeOf(folder));
  const warnings: PlaceWarning[] = [];
  if (network !== undefined)
    warnings.push({
      problem: `The folder ${folder} is on ${network}: the file locks that SQLite needs do not work there, and the store can be damaged`,
      remedy: 'Keep the store on a disk of this machine, or use PostgreSQL',
    });
  if (isShared())
    warnings.push({
      problem: `SVC_API_STORE_MODE=shared: all users who can write in the folder ${folder} can create keys`,
      remedy: 'Unset it once only one user can write there',
    });
  return warnings;
}
