import { existsSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { OPERATOR, operatorName } from '../../keys/authorization/principal.ts';
import type { Transaction } from '../../keys/changes/transaction.ts';
import { Transactions } from '../../keys/changes/transactions.ts';
import { type ErrorCode, isKeysError, KeysError } from '../../keys/errors.ts';
import { type CatalogAdditions, createCatalog } from '../../keys/permissions/catalog.ts';
import type { ProgressReport } from '../../keys/progress.ts';
import type { KeyRepository } from '../../keys/repository.ts';
import type { BringBack } from '../../keys/restore/bring-back.ts';
import { isOfOtherStore } from '../../keys/restore/origin.ts';
import { planRestore, type RestorePlan } from '../../keys/restore/plan.ts';
import { noteRestore, restoreKeys, type RestoreSource, takenIds } from '../../keys/restore/restore.ts';
import { SteadyClock } from '../../keys/steady-clock.ts';
import { printable } from '../../keys/text.ts';
import { readAuditKey } from '../audit-key.ts';
import { backUpStore } from './back-up-store.ts';
import { type OpenBackup, withBackup } from './open-backup.ts';
import { belongsToStore } from './own-files.ts';
import { putBackup } from './put-backup.ts';
import { requireNoForeignFile } from './replace-file.ts';
import { notEmpty } from '../copy.ts';
import { createKeyRepository } from '../key-repository.ts';
import { storeLocation } from '../location.ts';
import { openConnection, openStore, type Store } from '../open.ts';
import { isPostgresUrl, readPostgresUrl } from '../postgres/postgres-address.ts';
import { findDamage } from '../sqlite/integrity.ts';

/** What to restore, and where. */
interface RestoreOptions extends CatalogAdditions {
  /** The absolute path of the backup. */
  backup: string;
  database: string | undefined;
  env: NodeJS.ProcessEnv;
  busyTimeoutMs: number;
  /** Which of the revoked keys come back. */
  bringBack: BringBack;
  /** Put the backup in the place of a store that cannot be read, or is not to be. */
  isBlind: boolean;
  /** Agrees to what would be done, or says that nothing is to be done. */
  agree: (proposed: ProposedRestore) => Promise<boolean>;
  /** In entries of the audit log, in keys, and in bytes or rows. */
  onVerified?: ProgressReport | undefined;
  onCopied?: ProgressReport | undefined;
  onCompared?: ProgressReport | undefined;
  /** Milliseconds since 1970. Default: the clock of this machine. */
  clock?: () => number;
}

/** What would be restored. */
export interface ProposedRestore extends Pick<OpenBackup, 'contents' | 'differences'> {
  /** Undefined for a restore without a comparison. */
  plan: RestorePlan | undefined;
}

/** What was restored, or would be. */
export interface Restored extends ProposedRestore {
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
  requireOther(database, backup);
  const present = options.isBlind ? undefined : await openPresent(database, options);
  try {
    const near = isPostgresUrl(database) ? join(tmpdir(), 'svc-api') : placeOf(database);
    return await withBackup({ path: backup, near, auditKey, onVerified }, (opened) => {
      const source = { backup: basename(backup), head: opened.contents.head };
      return present ? compared(present, opened, source, options) : blind(database, opened, source, options);
    });
  } finally {
    await present?.close();
  }
}

/** Nothing of the store is a backup of it. @throws KeysError USAGE */
function requireOther(database: string, backup: string): void {
  if (isPostgresUrl(database) || !existsSync(database) || !belongsToStore(backup, database)) return;
  throw new KeysError('USAGE', `${printable(backup, 200)} is the key store itself, or belongs to it. Name a backup.`);
}

/** Where a path leads to, if to anything: a backup that may become that file must be on the same file system. */
function placeOf(path: string): string {
  return existsSync(path) ? realpathSync(path) : path;
}

/** Codes of a store that is lost for this program. */
const LOST: ReadonlySet<ErrorCode> = new Set(['STORE_CORRUPT', 'STORE_NEWER']);

/** Opens the store that the backup is compared with. @throws KeysError RESTORE_BLIND where it cannot, STORE_… */
async function openPresent(database: string, options: RestoreOptions): Promise<Store> {
  let store: Store | undefined;
  try {
    const { env, busyTimeoutMs } = options;
    store = await openStore({ database, env, busyTimeoutMs, ifMissing: 'empty' });
    if (!store.exists) throw blindError(`The key store ${store.location} does not exist.`);
    const damage = await damageOf(database, options);
    if (damage !== undefined) throw blindError(`The key store ${store.location} is damaged.`);
    return store;
  } catch (error) {
    await store?.close();
    throw isLost(error, database) ? blindError(error.message, error) : error;
  }
}

/** A file that fails for a reason that has no name is lost, too; a database server may work again in a moment. */
function isLost(error: unknown, database: string): error is KeysError {
  if (!isKeysError(error)) return false;
  return LOST.has(error.code) || (error.code === 'STORE_FAILED' && !isPostgresUrl(database));
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
    `${reason} So nobody can tell which keys were deleted, disabled or rotated since the backup, or created. ` +
      'If it is the right store, pass --without-comparison: all keys of the backup then work as they did back then.',
    { cause },
  );
}

/** Changes the keys of the store that is there, in one transaction, after a backup of it. */
async function compared(
  present: Store,
  { file, contents, differences }: OpenBackup,
  source: RestoreSource,
  options: RestoreOptions,
): Promise<Restored> {
  const { database, backup, env, busyTimeoutMs, bringBack, agree, onCompared: onProgress, onCopied } = options;
  const { repository } = present;
  const transactions = await transactionsOn(repository, options);
  const old = createKeyRepository(file);
  if (await isOfOtherStore(old.auditLog, repository.auditLog))
    throw blindError(`The backup ${printable(backup, 200)} is not one of the key store ${present.location}.`);
  const { catalog, clock } = transactions;
  const plan = await planRestore(bringBack, { backup: old, present: repository, catalog, now: clock(), onProgress });
  const result = { contents, differences, plan, store: present.location };
  if (!(await agree(result))) return { ...result, previous: undefined };
  const from = await openConnection({ database, env, busyTimeoutMs, mustExist: true });
  const previous = keptPath(from.dialect === 'sqlite' ? from.location : backup);
  try {
    await backUpStore(from, previous, { overwrite: false, auditKey: readAuditKey(env), onCopied });
  } finally {
    await from.close();
  }
  const [keys, effects] = await old.write(async (writer) => [
    await writer.findBy('id', takenIds(plan)),
    await writer.effects.export(plan.broughtBack.map(({ id }) => id)),
  ]);
  const clients = new Map<string, string>();
  for (const { id } of plan.broughtBack) {
    const client = await old.consents.clientOf(id);
    if (client !== undefined) clients.set(id, client);
  }
  try {
    await transactions.run((transaction) => restoreKeys(transaction, { plan, keys, clients, effects, source }));
  } catch (error) {
    // Nothing was changed. After other errors of a database server, that may be unknown.
    if (isKeysError(error) && error.code === 'RESTORE_OUTDATED') rmSync(previous, { force: true });
    throw error;
  }
  return { ...result, previous };
}

/** Puts the backup in the place of a store that nobody has looked at. */
async function blind(
  database: string,
  opened: OpenBackup,
  source: RestoreSource,
  options: RestoreOptions,
): Promise<Restored> {
  const { contents, differences, file } = opened;
  // What cannot be done is no dry run, either.
  await (isPostgresUrl(database) ? requireEmptyDatabase(database, options) : requireNoForeignFile(database));
  const store = isPostgresUrl(database) ? readPostgresUrl(database).location : database;
  const result = { contents, differences, plan: undefined, store };
  if (!(await options.agree(result))) return { ...result, previous: undefined };
  const transactions = await transactionsOn(createKeyRepository(file, readAuditKey(options.env)), options);
  await transactions.run(async (transaction) => noteRestore(transaction, source));
  const kept = keptPath(database);
  return { ...result, previous: (await putBackup(opened, { database, kept })) ? kept : undefined };
}

/** @throws KeysError STORE_NOT_EMPTY, STORE_… */
async function requireEmptyDatabase(database: string, { env, busyTimeoutMs }: RestoreOptions): Promise<void> {
  const store = await openStore({ database, env, busyTimeoutMs, ifMissing: 'empty' });
  const { exists, repository, location } = store;
  try {
    if (exists && ((await repository.list({ limit: 1 })).length > 0 || (await repository.auditLog.head())))
      throw notEmpty(location, 'Restore');
  } finally {
    await store.close();
  }
}

/** Changes of the operator, in a store whose clock does not run back. */
async function transactionsOn(repository: KeyRepository, options: CatalogAdditions & Pick<RestoreOptions, 'clock'>) {
  const catalog = createCatalog(options);
  const source = { read: options.clock ?? Date.now, elapsed: () => performance.now() };
  const steady = new SteadyClock(source, await repository.latestTime());
  const clock = () => steady.now();
  const transactions = new Transactions({ repository, catalog, clock, operator: operatorName() });
  const run = (work: (transaction: Transaction) => Promise<void>) =>
    transactions.run(OPERATOR, work, { revokes: true });
  return { catalog, clock, run };
}

/** Where a store is kept that a backup replaces. */
function keptPath(path: string): string {
  return `${path}.replaced-${new Date().toISOString().replaceAll(/[-:.]/g, '')}`;
}
