import { existsSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { OPERATOR, operatorName } from '../../keys/authorization/principal.ts';
import { Transactions } from '../../keys/changes/transactions.ts';
import { EFFECTS } from '../../keys/effect.ts';
import { type ErrorCode, isKeysError, KeysError } from '../../keys/errors.ts';
import { type CatalogAdditions, createCatalog } from '../../keys/permissions/catalog.ts';
import type { ProgressReport } from '../../keys/progress.ts';
import type { KeyRepository } from '../../keys/repository.ts';
import { CONSENTS } from '../../keys/requests/consent-request.ts';
import { type BringBack, planRestore, type RestorePlan } from '../../keys/restore/plan.ts';
import { noteRestore, restoreKeys, takenIds } from '../../keys/restore/restore.ts';
import { SteadyClock } from '../../keys/steady-clock.ts';
import { printable } from '../../keys/text.ts';
import { readAuditKey } from '../audit-log.ts';
import { backUpStore } from './back-up-store.ts';
import { belongsToStore, replaceStoreFile, requireNoForeignFile } from './backup-file.ts';
import { type OpenBackup, withBackup } from './open-backup.ts';
import type { Connection } from '../connection.ts';
import { copyStore, notEmpty } from '../copy.ts';
import { createKeyRepository } from '../key-repository.ts';
import { storeLocation } from '../location.ts';
import { openConnection, storeExists } from '../open.ts';
import { isPostgresUrl, readPostgresUrl } from '../postgres/postgres-address.ts';
import { findDamage } from '../sqlite/sqlite-schema.ts';

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

/** What both ways of restoring are told: `database` is the path or the URL that was meant. */
type Target = RestoreOptions & { database: string; auditKey: ReturnType<typeof readAuditKey> };

/**
 * Makes the keys of a store those of a backup. Nothing that was revoked since works again, unless that is wanted, or
 * the store cannot be compared with the backup.
 * @throws KeysError BACKUP_…, RESTORE_…, STORE_…, NOT_FOUND, INPUT_INVALID; what `agree` throws
 */
export async function restoreStore(options: RestoreOptions): Promise<Restored> {
  const { backup: path, env, onVerified } = options;
  const auditKey = readAuditKey(env);
  const database = storeLocation(options.database, env);
  const target = { ...options, database, auditKey };
  const isFile = !isPostgresUrl(database);
  if (isFile && existsSync(database) && belongsToStore(path, database))
    throw new KeysError('USAGE', `${printable(path, 200)} is the key store itself, or belongs to it. Name a backup.`);
  const present = options.isBlind ? undefined : await openPresent(target);
  try {
    // A backup that may become the file to which a path leads must be on the same file system.
    const place = isFile && existsSync(database) ? realpathSync(database) : database;
    const near = isFile ? place : join(tmpdir(), 'svc-api');
    return await withBackup({ path, near, auditKey, onVerified }, (backup) =>
      present ? changeKeys(present, backup, target) : putInPlace(backup, target),
    );
  } finally {
    await present?.close();
  }
}

/** Codes of a store that is lost for this program. */
const LOST: ReadonlySet<ErrorCode> = new Set(['STORE_CORRUPT', 'STORE_NEWER']);

/** Opens the store that the backup is compared with. @throws KeysError RESTORE_BLIND where it cannot, STORE_… */
async function openPresent(target: Target): Promise<Connection> {
  let store: Connection | undefined;
  try {
    store = (await storeExists(target)) ? await openConnection({ ...target, mustExist: true }) : undefined;
    if (!store) throw notComparable(`The key store ${formatLocation(target)} does not exist.`);
    if (store.dialect === 'sqlite' && (await findDamage(store)) !== undefined)
      throw notComparable(`The key store ${store.location} is damaged.`);
    return store;
  } catch (error) {
    await store?.close();
    // A file that fails for a reason that has no name is lost, too; a database server may work again in a moment.
    const isLost =
      isKeysError(error) &&
      (LOST.has(error.code) || (error.code === 'STORE_FAILED' && !isPostgresUrl(target.database)));
    throw isLost ? notComparable(error.message, error) : error;
  }
}

function formatLocation({ database }: Target): string {
  return isPostgresUrl(database) ? readPostgresUrl(database).location : database;
}

function notComparable(reason: string, cause?: unknown): KeysError {
  return new KeysError(
    'RESTORE_BLIND',
    `${reason} So nobody can tell which keys were deleted, disabled or rotated since the backup, or created. ` +
      'If it is the right store, pass --without-comparison: all keys of the backup then work as they did back then.',
    { cause },
  );
}

/** Changes the keys of the store that is there, in one transaction, after a backup of it. */
async function changeKeys(
  store: Connection,
  { file, contents, differences }: OpenBackup,
  { backup: path, auditKey, bringBack, agree, onCompared: onProgress, onCopied, ...options }: Target,
): Promise<Restored> {
  const present = createKeyRepository(store, auditKey);
  const backup = createKeyRepository(file);
  const { transactions, catalog, clock } = await transactionsOn(present, options);
  const plan = await planRestore(bringBack, { backup, present, catalog, now: clock(), onProgress });
  if (!plan) throw notComparable(`The backup ${printable(path, 200)} is not one of the key store ${store.location}.`);
  const result = { contents, differences, plan, store: store.location };
  if (!(await agree(result))) return { ...result, previous: undefined };
  const previous = keptPath(store.dialect === 'sqlite' ? store.location : path);
  await backUpStore(store, previous, { overwrite: false, auditKey, onCopied });
  const broughtBack = plan.broughtBack.map(({ id }) => id);
  const [keys, effects] = await backup.write(async (writer) => [
    await writer.findBy('id', takenIds(plan)),
    await writer.port(EFFECTS).export(broughtBack),
  ]);
  const clients = new Map<string, string>();
  for (const id of broughtBack) {
    const client = await backup.port(CONSENTS).clientOf(id);
    if (client !== undefined) clients.set(id, client);
  }
  const source = { backup: basename(path), head: contents.head };
  try {
    await transactions.run(
      OPERATOR,
      (transaction) => restoreKeys(transaction, { plan, keys, clients, effects, source }),
      { revokes: true },
    );
  } catch (error) {
    // Nothing was changed. After other errors of a database server, that may be unknown.
    if (isKeysError(error) && error.code === 'RESTORE_OUTDATED') rmSync(previous, { force: true });
    throw error;
  }
  return { ...result, previous };
}

/** Puts the backup in the place of a store that nobody has looked at: of a file, or in an empty database. */
async function putInPlace({ contents, differences, file, path }: OpenBackup, target: Target): Promise<Restored> {
  const { database, auditKey } = target;
  const isFile = !isPostgresUrl(database);
  // What cannot be done is no dry run, either.
  await (isFile ? requireNoForeignFile(database) : requireEmptyDatabase(target));
  const result = { contents, differences, plan: undefined, store: formatLocation(target) };
  if (!(await target.agree(result))) return { ...result, previous: undefined };
  const { transactions } = await transactionsOn(createKeyRepository(file, auditKey), target);
  const source = { backup: basename(target.backup), head: contents.head };
  await transactions.run(OPERATOR, async (transaction) => noteRestore(transaction, source), { revokes: true });
  if (isFile) {
    await file.close();
    const kept = keptPath(database);
    return { ...result, previous: replaceStoreFile(path, database, kept) ? kept : undefined };
  }
  const to = await openConnection({ database });
  try {
    await copyStore(file, to);
    return { ...result, previous: undefined };
  } finally {
    await to.close();
  }
}

/** @throws KeysError STORE_NOT_EMPTY, STORE_… */
async function requireEmptyDatabase(target: Target): Promise<void> {
  if (!(await storeExists(target))) return;
  const store = await openConnection({ ...target, mustExist: true });
  try {
    const repository = createKeyRepository(store);
    if ((await repository.list({ limit: 1 })).length > 0 || (await repository.auditLog.head()))
      throw notEmpty(store.location, 'Restore');
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
  return { catalog, clock, transactions: new Transactions({ repository, catalog, clock, operator: operatorName() }) };
}

/** Where a store is kept that a backup replaces. */
function keptPath(path: string): string {
  return `${path}.replaced-${new Date().toISOString().replaceAll(/[-:.]/g, '')}`;
}
