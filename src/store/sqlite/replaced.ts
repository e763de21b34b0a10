import { statSync } from 'node:fs';
import { isKeysError, KeysError } from '../../keys/errors.ts';
import { lastChangesInWal, precedes } from './last-change.ts';
import type { MainFile } from './main-file.ts';
import { isLocked, isMixedUp, sqliteError } from './sqlite-errors.ts';

/** How long a server that is idle may take to notice that its file was replaced, twice, in milliseconds. */
export const REPLACED_WAIT_MS = 2000;

/** The file at a path was found to be another one, before anything was changed: the work is repeated on that one. */
export class FileReplaced extends Error {}

/** Whether opening may succeed once another process has noticed that the file was replaced. */
export function isReplaced(error: unknown): boolean {
  return (isKeysError(error) && error.code === 'STORE_REPLACED') || isMixedUp(error);
}

/**
 * Whether work that has changed nothing yet is repeated after an error: until a deadline of `performance.now()`. Side
 * files that do not belong together are waited for only until those who have them open must have noticed.
 */
export function repeatableUntil(deadline: number): (error: unknown) => boolean {
  const mixedUpUntil = Math.min(deadline, performance.now() + REPLACED_WAIT_MS);
  return (error) => {
    if (isMixedUp(causeOf(error))) return performance.now() <= mixedUpUntil;
    return (isLocked(error) || error instanceof FileReplaced) && performance.now() <= deadline;
  };
}

/** An error after which work is not repeated any more, for users. */
export function givenUp(error: unknown, path: string): Error {
  const cause = causeOf(error);
  return cause instanceof FileReplaced ? replacedInUse(path) : sqliteError(cause, path);
}

function causeOf(error: unknown): unknown {
  return error instanceof FileReplaced && isMixedUp(error.cause) ? error.cause : error;
}

/**
 * Refuses a file beside which the -wal file of another one lies: SQLite would apply that to it.
 * @param file where the path leads to
 * @throws KeysError STORE_REPLACED
 */
export function requireOwnWal(path: string, file: string, main: MainFile): void {
  const wal = `${file}-wal`;
  for (let last: string | undefined; ;) {
    if (!statSync(wal, { throwIfNoEntry: false })?.size) return;
    const inWal = lastChangesInWal(wal);
    if (!inWal) return; // Made by an older version, which does not mark its changes.
    const inFile = main.lastChange(inWal.page, inWal.pageBytes);
    if (precedes(inFile, inWal.changes)) return;
    // Another process may have written in between.
    const now = JSON.stringify([inFile, inWal]);
    if (now === last) throw foreignWal(path, wal);
    last = now;
  }
}

function foreignWal(path: string, wal: string): KeysError {
  const remedy = `Stop every program that uses it. If the file is the right one, remove ${wal} and ${path}-shm`;
  return new KeysError(
    'STORE_REPLACED',
    `The key store ${path} was replaced, but ${wal} belongs to the file that was there before. ${remedy}.`,
  );
}

/** The error where a file was replaced after a change was begun, and before it was in the file. */
export function replacedMeanwhile(path: string): KeysError {
  return new KeysError(
    'STORE_REPLACED',
    `The key store ${path} was replaced while it was changed: the change may be lost. Check, and make it again.`,
  );
}

/** The error where a file was moved away that another program still reads. */
export function stillRead(path: string): KeysError {
  return new KeysError(
    'STORE_REPLACED',
    `The key store ${path} was replaced, but another program still reads the file that was there before. ` +
      'Stop that program.',
  );
}

/** The error where a file was replaced before anything was changed, again and again. */
function replacedInUse(path: string): KeysError {
  return new KeysError('STORE_REPLACED', `The key store ${path} was replaced while it was used. Try again.`);
}
