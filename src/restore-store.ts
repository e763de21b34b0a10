import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { OPERATOR } from './keys/authorization/principal.ts';
import { Transactions } from './keys/changes/transactions.ts';
import { type ErrorCode, isKeysError, KeysError } from './keys/errors.ts';
import { type CatalogAdditions, createCatalog } from './keys/permissions/catalog.ts';
import type { ProgressReport } from './keys/progress.ts';
import type { BringBack } from './keys/restore/bring-back.ts';
import type { RestorePlan } from './keys/restore/plan.ts';
import { noteRestore, type RestoreSource } from './keys/restore/restore.ts';
import { type OpenKeys, openKeys } from './open-keys.ts';
import { operatorName } from './operator-name.ts';
import { readAuditKey } from './store/audit-key.ts';
import { backUpStore } from './store/backup.ts';
import { createKeyRepository } from './store/key-repository.ts';
import { storeLocation } from './store/location.ts';
import { type OpenBackup, withBackup } from './store/open-backup.ts';
import { openConnection } from './store/open.ts';
import { isPostgresUrl, readPostgresUrl } from './store/postgres/postgres-address.ts';
import { putBackup } from './store/put-backup.ts';
import { findDamage } from './store/sqlite/integrity.ts';
import type { BackupContents } from './store/verify-backup.ts';

/** What to restore, and where. */
export interface RestoreOptions extends CatalogAdditions {
  /** The absolute path of the backup. */
  backup: string;
  database: string | undefined;
  env: NodeJS.ProcessEnv;
  busyTimeoutMs: number;
  /** Which of the revoked keys come back. */
  bringBack: BringBack;
  /** Put the backup in the place of a store that cannot be read, or is not to be. */
  isBlind: boolean;
  /** Agrees to what would be done, or says that nothing is to be done; undefined is a restore without a comparison. */
  agree: (plan: RestorePlan | undefined, contents: BackupContents) => Promise<boolean>;
  /** In entries of the audit log, and in keys. */
  onVerified?: ProgressReport | undefined;
  onCompared?: ProgressReport | undefined;
}

/** What was restored, or would be. */
export interface Restored {
  contents: BackupContents;
  /** Undefined for a restore without a comparison. */
  plan: RestorePlan | undefined;
  /** See `Connection.location`. */
  store: string;
  /** The path of a copy of the store as it was before; undefined if there was none, or nothing was done. */
  previous: string | undefined;
}

/**
 * Makes the keys of a store those of a backup. Nothing that was revoked since works again, unless that is wanted, or
 * the store cannot be compared with the backup.
 * @throws KeysError BACKUP_…, RESTORE_…, STORE_…, NOT_FOUND, INPUT_INVALID; what `agree` throws
 */
export async function restoreStore(options: RestoreOptions): Promise<Restored> {
  const { backup, env, onVerified } = options;
  const auditKey = readAuditKey(env);
  const database = storeLocation(options.database, env);
  const present = options.isBlind ? undefined : await openPresent(database, options);
  try {
    const near = isPostgresUrl(database) ? join(tmpdir(), 'svc-api') : database;
    return await withBackup({ path: backup, near, auditKey, onVerified }, (opened) => {
      const source = { backup: basename(backup), head: opened.contents.head };
      return present ? compared(present, opened, source, options) : blind(database, opened, source, options);
    });
  } finally {
    await present?.close();
  }
}

/** Codes of a store that is lost for this program. */
const LOST: readonly ErrorCode[] = ['STORE_CORRUPT', 'STORE_NEWER'];

/** Opens the store that the backup is compared with. @throws KeysError RESTORE_BLIND if that is not possible, STORE_… */
async function openPresent(database: string, options: RestoreOptions): Promise<OpenKeys> {
  let keys: OpenKeys | undefined;
  try {
    keys = await openKeys({ ...options, database, ifMissing: 'empty' });
    if (!keys.exists) throw blindError(`The key store ${keys.location} does not exist.`);
    const damage = await damageOf(database, options);
    if (damage !== undefined) throw blindError(`The key store ${keys.location} is damaged.`);
    return keys;
  } catch (error) {
    await keys?.close();
    throw isKeysError(error) && LOST.includes(error.code) ? blindError(error.message, error) : error;
  }
}

async function damageOf(database: string, { env, busyTimeoutMs }: RestoreOptions): Promise<string | undefined> {
  if (isPostgresUrl(database)) return undefined;
  const connection = await openConnection({ database, env, busyTimeoutMs, mustExist: true });
  try {
    return await findDamage(connection);
  } finally {
    await connection.close();
  }
}

function blindError(reason: string, cause?: unknown): KeysError {
  return new KeysError(
    'RESTORE_BLIND',
    `${reason} So nobody can tell which keys were deleted, disabled or rotated since the backup, or created. If it is ` +
      'the right store, pass --without-comparison: all keys of the backup then work as they did when it was made.',
    { cause },
  );
}

/** Changes the keys of the store that is there, in one transaction, after a backup of it. */
async function compared(
  present: OpenKeys,
  { file, contents }: OpenBackup,
  source: RestoreSource,
  { database, backup, env, busyTimeoutMs, bringBack, agree, onCompared }: RestoreOptions,
): Promise<Restored> {
  const repository = createKeyRepository(file);
  const plan = await present.planRestore(repository, bringBack, onCompared);
  const result = { contents, plan, store: present.location };
  if (!(await agree(plan, contents))) return { ...result, previous: undefined };
  const from = await openConnection({ database, env, busyTimeoutMs, mustExist: true });
  const previous = keptPath(from.dialect === 'sqlite' ? from.location : backup);
  try {
    await backUpStore(from, previous, { overwrite: false, auditKey: readAuditKey(env) });
  } finally {
    await from.close();
  }
  await present.restore(repository, plan, source);
  return { ...result, previous };
}

/** Puts the backup in the place of a store that nobody has looked at. */
async function blind(
  database: string,
  opened: OpenBackup,
  source: RestoreSource,
  { env, agree, ...options }: RestoreOptions,
): Promise<Restored> {
  const { contents, file } = opened;
  const store = isPostgresUrl(database) ? readPostgresUrl(database).location : database;
  const result = { contents, plan: undefined, store };
  if (!(await agree(undefined, contents))) return { ...result, previous: undefined };
  const transactions = new Transactions({
    repository: createKeyRepository(file, readAuditKey(env)),
    catalog: createCatalog(options),
    clock: Date.now,
    operator: operatorName(),
  });
  await transactions.run(OPERATOR, async (transaction) => noteRestore(transaction, source));
  const kept = keptPath(database);
  return { ...result, previous: (await putBackup(opened, { database, kept })) ? kept : undefined };
}

/** Where a store is kept that a backup replaces. */
function keptPath(path: string): string {
  return `${path}.replaced-${new Date().toISOString().replaceAll(/[-:.]/g, '')}`;
}
