import type { KeyObject } from 'node:crypto';
import { sql } from 'kysely';
import type { AuditPosition } from '../../keys/audit/audit-entry.ts';
import { type AuditVerification, verifyAuditLog } from '../../keys/audit/verify.ts';
import { type ErrorCode, isKeysError, KeysError } from '../../keys/errors.ts';
import type { ProgressReport } from '../../keys/progress.ts';
import { printable } from '../../keys/text.ts';
import { auditReaderOf } from '../audit-log.ts';
import { newestSchema } from '../migrations.ts';
import type { PrivateFile } from '../sqlite/private-file.ts';

/** What a backup has. */
export interface BackupContents {
  keys: number;
  auditEntries: number;
  /** The version of its schema. */
  schema: number;
  /** The newest entry of its audit log. */
  head: AuditPosition | undefined;
  /** Whether its audit log is whole. */
  log: AuditVerification;
}

/** What a backup has, whose file is sound, and whether its audit log is whole. @throws KeysError STORE_… */
export async function verifyBackup(
  file: PrivateFile,
  auditKey: KeyObject | undefined,
  onVerified?: ProgressReport,
): Promise<BackupContents> {
  const log = auditReaderOf((work) => file.run(work), auditKey);
  const count = async (table: 'api_keys' | 'audit_log') => {
    const rows = await file.run((db) =>
      db
        .selectFrom(table)
        .select(sql<number>`count(*)`.as('count'))
        .execute(),
    );
    return Number(rows[0]!.count);
  };
  return {
    keys: await count('api_keys'),
    auditEntries: await count('audit_log'),
    schema: newestSchema(),
    head: await log.head(),
    log: await verifyAuditLog(log, undefined, onVerified),
  };
}

/** Codes of a store that cannot be opened, which mean that a backup is not whole. */
const DAMAGED: ReadonlySet<ErrorCode> = new Set(['STORE_CORRUPT', 'STORE_UNAVAILABLE', 'STORE_FAILED']);

/** Runs work on a backup. What shows that the file is damaged becomes an error that says so. */
export async function onBackup<Result>(path: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (isKeysError(error) && DAMAGED.has(error.code)) throw invalid(path, undefined, { cause: error });
    throw error;
  }
}

/** The error for a backup that cannot be used. */
export function invalid(path: string, reason?: string, options?: ErrorOptions): KeysError {
  const detail = reason === undefined ? '' : ` (${printable(reason, 200)})`;
  return new KeysError(
    'BACKUP_INVALID',
    `The backup ${printable(path, 200)} is damaged, incomplete, or no backup of a key store${detail}. Use another one.`,
    options,
  );
}
