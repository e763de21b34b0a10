import type { KeyObject } from 'node:crypto';
import { realpathSync, statSync } from 'node:fs';
import { type AuditPosition, type AuditVerification, verifyAuditLog } from '../../keys/audit/index.ts';
import {
  debugTimed,
  type ErrorCode,
  isKeysError,
  KeysError,
  printable,
  type ProgressReport,
} from '../../keys/basics/index.ts';
import type { Connection, Tables } from '../../store/index.ts';
import {
  auditReaderOf,
  countRows,
  type FeatureTables,
  findDamage,
  goneFrom,
  newestSchema,
  openDatabase,
  PrivateFile,
  readRecords,
  sqliteError,
  storedHash,
  TRANSIENT_TABLES,
} from '../../store/whole-store.ts';
import { copyStore } from './copy-store.ts';
import { BackupFile, invalid, requireOther, unavailable } from './backup-file.ts';

/** A finished backup. */
export interface StoreBackup extends BackupContents {
  /** Its path. */
  file: string;
  /** See `Connection.location`. */
  from: string;
  bytes: number;
}

/** Options of a backup. */
export interface BackupOptions {
  /** True to replace an existing file. */
  overwrite: boolean;
  /** The key of the audit log, if it has one. */
  auditKey: KeyObject | undefined;
  /** Called with the amount copied: bytes of a file, or rows of a database. */
  onCopied?: ProgressReport | undefined;
  /** In entries of the audit log. */
  onVerified?: ProgressReport | undefined;
}

/**
 * Writes a consistent copy of a whole store into a file while others use the store, and verifies the file. It has mode
 * 0600 from the start, and gets its name only once it is complete and on disk.
 * @param path an absolute path
 * @throws KeysError BACKUP_EXISTS, BACKUP_UNAVAILABLE, BACKUP_INVALID, STORE_…
 */
export async function backUpStore(from: Connection, path: string, options: BackupOptions): Promise<StoreBackup> {
  if (from.dialect === 'sqlite') requireOther(path, from.location);
  const target = BackupFile.create(path, options);
  try {
    const copied = await copyInto(target.partial, from, path, options);
    const contents = await onBackup(path, () =>
      checkCopy(target.partial, path, copied, { ...options, features: from.features }),
    );
    const bytes = statSync(target.partial).size;
    target.publish();
    return { file: path, from: from.location, bytes, ...contents };
  } catch (error) {
    if (!isKeysError(error)) throw error;
    if (error.code === 'BACKUP_INVALID') await requireSound(from, error);
    // The store is only read, so the full disk is that of the backup.
    if (error.code !== 'STORE_FULL') throw error;
    throw unavailable(path, 'cannot be written: the disk is full, or a limit is reached. Make room', { cause: error });
  } finally {
    target.discard();
  }
}

/** Finds out whether a damaged copy comes from a damaged store, or from the disk of the backup. */
async function requireSound(from: Connection, cause: KeysError): Promise<void> {
  const damage = from.dialect === 'sqlite' ? await findDamage(from).catch(() => undefined) : undefined;
  if (damage === undefined) return;
  throw new KeysError(
    'STORE_CORRUPT',
    `The key store ${from.location} is damaged (${printable(damage, 200)}). No backup was written. ` +
      'Check the disk, and restore an earlier backup.',
    { cause },
  );
}

async function copyInto(
  partial: string,
  from: Connection,
  path: string,
  { onCopied }: BackupOptions,
): Promise<CopiedFile> {
  if (from.dialect === 'sqlite') return copySqliteFile(from.location, partial, onCopied);
  const to = await PrivateFile.open(partial, { location: path, mustExist: false, features: from.features });
  try {
    const { keys, head } = await copyStore(from, to, { ...(onCopied && { onCopied }) });
    return { keys, head };
  } finally {
    await to.close();
  }
}

/** Opens the written file again and compares it with the store. */
async function checkCopy(
  partial: string,
  path: string,
  copied: CopiedFile,
  { auditKey, onVerified, features }: BackupOptions & { features: readonly FeatureTables[] },
): Promise<BackupContents> {
  const file = await PrivateFile.open(partial, { location: path, mustExist: true, features });
  try {
    // A backup put in place by hand must not bring back ended sessions.
    await clearTransient(file);
    const damage = await findDamage(file, { rowsAlone: true });
    if (damage !== undefined) throw invalid(path, damage);
    const contents = await verifyBackup(file, auditKey, onVerified);
    if (contents.keys !== copied.keys || (contents.head && storedHash(contents.head.hash)) !== copied.head)
      throw invalid(path, `it has ${contents.keys} keys, and the store had ${copied.keys}`);
    return contents;
  } finally {
    await file.close();
  }
}

/** Removes transient data from a copy of a store: requests of applications, and sessions. */
async function clearTransient(file: Connection): Promise<void> {
  await file.write(async (db) => {
    const gone = goneFrom(await readRecords(db), file.features);
    const tables = [...file.features, ...gone].flatMap(({ transientTables = [] }) => transientTables);
    for (const table of [...TRANSIENT_TABLES, ...tables]) await db.deleteFrom(table as keyof Tables).execute();
  });
}

/** How many pages are copied between two turns of other work: about 4 MB. */
const PAGES_PER_TURN = 1000;

/** Facts about the original file, for comparison with its copy. */
interface CopiedFile {
  keys: number;
  /** The hash of the newest entry of the audit log, as stored. */
  head: string | undefined;
}

/** How long to wait for a file that another program has locked exclusively, in milliseconds. */
const LOCK_WAIT_MS = 8000;

/**
 * Copies the file of an open store page by page, consistently, while others read and write it.
 * @param target a file of 0 bytes, whose mode is kept
 * @param onCopied called with bytes; an error from it ends the copy
 * @throws KeysError STORE_…
 */
function copySqliteFile(path: string, target: string, onCopied?: ProgressReport): Promise<CopiedFile> {
  return debugTimed(
    'the file of the store was copied',
    () => copyFile(path, target, onCopied),
    (copied) => ({ store: path, to: target, keys: copied?.keys }),
  );
}

async function copyFile(path: string, target: string, onCopied?: ProgressReport): Promise<CopiedFile> {
  let driver;
  try {
    driver = openDatabase(realpathSync(path), { fileMustExist: true, timeout: LOCK_WAIT_MS });
    const pageBytes = driver.pragma('page_size', { simple: true }) as number;
    // A read transaction keeps one state of the file. Without it, each change by another program would restart the
    // copy.
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

/** The contents of a backup. */
export interface BackupContents {
  keys: number;
  auditEntries: number;
  /** The version of its schema. */
  schema: number;
  /** The newest entry of its audit log. */
  head: AuditPosition | undefined;
  /** The verification of its audit log. */
  log: AuditVerification;
}

/** Reads the contents of an intact backup file, and verifies its audit log. @throws KeysError STORE_… */
export async function verifyBackup(
  file: PrivateFile,
  auditKey: KeyObject | undefined,
  onVerified?: ProgressReport,
): Promise<BackupContents> {
  const log = auditReaderOf((work) => file.run(work), file.dialect, auditKey);
  return {
    keys: await file.run((db) => countRows(db, 'api_keys')),
    auditEntries: await file.run((db) => countRows(db, 'audit_log')),
    schema: newestSchema(),
    head: await log.head(),
    log: await verifyAuditLog(log, { onProgress: onVerified }),
  };
}

/** Codes of a store that cannot be opened. For a backup, they mean that it is incomplete. */
const DAMAGED: ReadonlySet<ErrorCode> = new Set(['STORE_CORRUPT', 'STORE_UNAVAILABLE', 'STORE_FAILED']);

/** Runs work on a backup. Errors of a damaged file become errors about the backup. */
export async function onBackup<Result>(path: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (isKeysError(error) && DAMAGED.has(error.code)) throw invalid(path, undefined, { cause: error });
    throw error;
  }
}
