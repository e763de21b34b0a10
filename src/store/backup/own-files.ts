import { realpathSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { type FileIdentity, isSameFile, sideFilesOf } from '../sqlite/sqlite-file.ts';

/** Whether a path leads to an SQLite store that is there, by whatever way, or to what is kept beside it. */
export function belongsToStore(path: string, location: string): boolean {
  const place = realpathSync(location);
  const own = [location, ...sideFilesOf(place), `${place}-reserve`];
  const file = identityOf(path);
  const folder = identityOf(dirname(path));
  return own.some(
    (each) =>
      (file !== undefined && isSameFile(file, identityOf(each))) ||
      (basename(path) === basename(each) && folder !== undefined && isSameFile(folder, identityOf(dirname(each)))),
  );
}

function identityOf(path: string): FileIdentity | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined; // What is done there next tells why.
  }
}
