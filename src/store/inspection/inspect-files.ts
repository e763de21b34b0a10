import { accessSync, constants, lstatSync, realpathSync, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { requireSecureFile } from '../sqlite/sqlite-access.ts';
import { sqliteError } from '../sqlite/sqlite-errors.ts';
import { sideFilesOf } from '../sqlite/sqlite-file.ts';
import { failure, failureBy, type Finding, ok, warning } from './finding.ts';

const OTHERS = 0o077;
const MEGABYTE = 1_000_000;
/** With less, a change fails soon. */
const SCARCE_BYTES = 10 * MEGABYTE;

/** Whose the files of a store are, and who else may use them. */
export function inspectAccess(path: string): Finding[] {
  const findings: Finding[] = [];
  try {
    requireSecureFile(path, { repairs: false });
  } catch (error) {
    findings.push(failureBy('ACCESS', sqliteError(error, path)));
  }
  try {
    const file = realpathSync(path);
    const { uid } = statSync(file);
    for (const each of [file, ...sideFilesOf(file), `${file}-reserve`]) {
      const stat = lstatSync(each, { throwIfNoEntry: false });
      if (!stat) continue;
      const mode = `0${(stat.mode & 0o7777).toString(8)}`;
      if ((stat.mode & OTHERS) !== 0)
        findings.push(warning('ACCESS', `${each} can be used by others: its mode is ${mode}.`, `chmod 600 ${each}`));
      if (!isUsable(each))
        findings.push(
          failure(
            'ACCESS',
            `${each} cannot be read and written by this user: its mode is ${mode}.`,
            `Run as the user who owns it (${stat.uid}), or chmod u+rw ${each}`,
          ),
        );
      if (stat.uid !== uid)
        findings.push(
          failure(
            'ACCESS',
            `${each} belongs to another user (${stat.uid}) than the store (${uid}).`,
            `chown --reference=${file} ${each}`,
          ),
        );
    }
    return findings.length > 0
      ? findings
      : [ok('ACCESS', `${file} and its folder are those of the user ${uid} alone.`)];
  } catch (error) {
    return findings.length > 0 ? findings : [failureBy('ACCESS', sqliteError(error, path))];
  }
}

/** Whether the rights of a file let this user read and write it; on a file system that can only be read as well. */
function isUsable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EROFS';
  }
}

/** How much room there is for a store, and for a backup beside it. */
export function inspectSpace(path: string): Finding {
  try {
    const folder = dirname(realpathSync(path));
    const { bavail, bsize } = statfsSync(folder);
    const [free, size] = [bavail * bsize, statSync(path).size];
    const text = `${folder} has ${megabytes(free)} MB of free space; the store has ${megabytes(size)} MB.`;
    const remedy = 'Make room, or move the store to a larger disk.';
    if (free < SCARCE_BYTES) return failure('SPACE', text, remedy);
    // A migration or a restore may need as much as the store has.
    return free < size + SCARCE_BYTES ? warning('SPACE', text, remedy) : ok('SPACE', text);
  } catch (error) {
    return failureBy('SPACE', sqliteError(error, path));
  }
}

function megabytes(bytes: number): string {
  return (bytes / MEGABYTE).toLocaleString('en-US', { maximumFractionDigits: 1 });
}
