import {
  chmodSync,
  closeSync,
  copyFileSync,
  constants,
  existsSync,
  linkSync,
  openSync,
  readSync,
  realpathSync,
  renameSync,
  statSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { KeysError } from '../../keys/errors.ts';
import { MAGIC } from './staged-backup.ts';
import { APPLICATION_ID } from '../sqlite/sqlite-migrate.ts';
import { createStoreFile, identifySideFiles, identifyStoreFile, removeSideFiles } from '../sqlite/sqlite-file.ts';
import { sync } from './backup-file.ts';
import { sqliteError } from '../sqlite/sqlite-errors.ts';

/**
 * Puts a file in the place of an SQLite store, at once. What was there is kept, with its -wal. Servers that run on it
 * use the new one from the next request on.
 * @param file whole and closed; it is moved
 * @param kept where the store is that was there before
 * @returns whether there was one
 * @throws KeysError STORE_…
 */
export function replaceStoreFile(file: string, store: string, kept: string): boolean {
  try {
    sync(file);
    const isThere = statSync(store, { throwIfNoEntry: false })?.isFile() ?? false;
    // SQLite keeps its files next to the one that a link leads to.
    const place = isThere ? realpathSync(store) : store;
    const sideFiles = identifySideFiles(place);
    if (isThere) keep(place, kept);
    if (existsSync(`${place}-wal`)) keepCopy(`${place}-wal`, `${kept}-wal`);
    if (isThere) chmodSync(kept, 0o600);
    renameSync(file, place);
    // Whatever opens it from now on must not take the -wal of the other one for its own.
    removeSideFiles(sideFiles);
    sync(dirname(place));
    return isThere;
  } catch (error) {
    throw sqliteError(error, store);
  }
}

/** Gives a file a second name, so that there is no moment without it. */
function keep(file: string, kept: string): void {
  try {
    linkSync(file, kept);
  } catch {
    keepCopy(file, kept);
  }
}

function keepCopy(file: string, kept: string): void {
  createStoreFile(kept);
  copyFileSync(file, kept, constants.COPYFILE_FICLONE);
}

/** Where the file format of SQLite (section 1.3) has the id of the program that a file belongs to. */
const APPLICATION_ID_AT = 68;

/**
 * Requires that a file that is to be replaced belongs to no other program. One that is damaged may be replaced.
 * @throws KeysError STORE_FOREIGN, STORE_UNAVAILABLE
 */
export function requireNoForeignFile(path: string): void {
  if (!statSync(path, { throwIfNoEntry: false })) return;
  identifyStoreFile(path);
  const head = Buffer.alloc(APPLICATION_ID_AT + 4);
  const file = openSync(path, 'r');
  try {
    readSync(file, head, 0, head.length, 0);
  } finally {
    closeSync(file);
  }
  const isForeign =
    head.toString('latin1', 0, MAGIC.length) === MAGIC && head.readInt32BE(APPLICATION_ID_AT) !== APPLICATION_ID;
  if (isForeign)
    throw new KeysError(
      'STORE_FOREIGN',
      `${path} is an SQLite file of another program, not a key store. Check the path.`,
    );
}
