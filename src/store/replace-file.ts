import { chmodSync, copyFileSync, constants, existsSync, linkSync, realpathSync, renameSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { createStoreFile, identifySideFiles, removeSideFiles } from './sqlite/sqlite-file.ts';
import { sync } from './backup-file.ts';
import { sqliteError } from './sqlite/sqlite-errors.ts';

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
