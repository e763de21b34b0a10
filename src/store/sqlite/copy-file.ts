import { realpathSync } from 'node:fs';
import Database from 'better-sqlite3';
import type { ProgressReport } from '../../keys/progress.ts';
import { debugTimed } from '../../keys/steps.ts';
import { sqliteError } from './sqlite-errors.ts';

/** How many pages are copied before others get a turn: some 4 MB. */
const PAGES_PER_TURN = 1000;

/** What a copy of a file must have, as the original had it. */
export interface CopiedFile {
  keys: number;
  /** The hash of the newest entry of the audit log. */
  head: string | undefined;
}

/** How long to wait for the lock of a file that another program has to itself, in milliseconds. */
const LOCK_WAIT_MS = 8000;

/**
 * Copies the file of an open store, page by page, as it is at one moment. Others read and write it meanwhile.
 * @param target a file of 0 bytes, whose mode stays as it is
 * @param onCopied in bytes; what it throws ends the copy
 * @throws KeysError STORE_…
 */
export function copySqliteFile(path: string, target: string, onCopied?: ProgressReport): Promise<CopiedFile> {
  return debugTimed(
    'the file of the store was copied',
    () => copyFile(path, target, onCopied),
    (copied) => ({ store: path, to: target, keys: copied?.keys }),
  );
}

async function copyFile(path: string, target: string, onCopied?: ProgressReport): Promise<CopiedFile> {
  let driver;
  try {
    driver = new Database(realpathSync(path), { fileMustExist: true, timeout: LOCK_WAIT_MS });
    const pageBytes = driver.pragma('page_size', { simple: true }) as number;
    // One read transaction holds the moment. Without it, each change by another program would begin the copy anew.
    driver.exec('begin');
    const head = driver.prepare<[], string>('select hash from audit_head').pluck().get();
    const keys = driver.prepare<[], number>('select count(*) from api_keys').pluck().get()!;
    const reported = { failure: undefined as unknown };
    await driver.backup(target, {
      progress: ({ totalPages, remainingPages }) => {
        const done = (totalPages - remainingPages) * pageBytes;
        onCopied?.(done, totalPages * pageBytes).catch((error: unknown) => (reported.failure = error));
        if (reported.failure !== undefined) throw reported.failure as Error;
        return PAGES_PER_TURN;
      },
    });
    return { keys, head };
  } catch (error) {
    throw sqliteError(error, path);
  } finally {
    driver?.close();
  }
}
