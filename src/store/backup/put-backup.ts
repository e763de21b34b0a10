import { copyStore } from '../copy.ts';
import { openConnection } from '../open.ts';
import type { OpenBackup } from './open-backup.ts';
import { isPostgresUrl } from '../postgres/postgres-address.ts';
import { replaceStoreFile } from './replace-file.ts';

/** Where a backup is put. */
export interface PutOptions {
  /** An absolute path, or the URL of a PostgreSQL database. */
  database: string;
  /** Where a file is kept that was there before. */
  kept: string;
}

/**
 * Makes a backup the store: in the place of a file, or in an empty database.
 * @returns whether a file was replaced
 * @throws KeysError STORE_…, STORE_NOT_EMPTY for a database that has keys
 */
export async function putBackup({ file, path }: OpenBackup, { database, kept }: PutOptions): Promise<boolean> {
  if (!isPostgresUrl(database)) {
    await file.close();
    return replaceStoreFile(path, database, kept);
  }
  const to = await openConnection({ database });
  try {
    await copyStore(file, to);
    return false;
  } finally {
    await to.close();
  }
}
