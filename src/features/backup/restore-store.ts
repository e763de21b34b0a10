import { type KeyObject, randomBytes } from 'node:crypto';
import { existsSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { type Kysely, sql } from 'kysely';
import { OPERATOR, operatorName } from '../../keys/authorization/index.ts';
import { type ErrorCode, isKeysError, KeysError, printable, type ProgressReport } from '../../keys/basics/index.ts';
import { type OwnKeyListener, type RestoreStep, Transactions } from '../../keys/changes/index.ts';
import { type CatalogAdditions, createCatalog } from '../../keys/permissions/index.ts';
import type { KeyRepository, SchemaDifference } from '../../keys/repository/index.ts';
import { type BringBack, noteRestore, planRestore, restoreKeys, type RestorePlan, takenIds } from './restore.ts';
import { type Connection, type FeatureInStore, portsOf, type Tables } from '../../store/index.ts';
import {
  createKeyRepository,
  createStore,
  dialectOf,
  type FeatureRecord,
  type FeatureTables,
  findDamage,
  goneFrom,
  isPostgresUrl,
  leasesEnded,
  MainFile,
  migrateSqlite,
  openConnection,
  openPrivateDatabase,
  type PrivateDatabase,
  PrivateFile,
  ranOf,
  readAuditKey,
  readPostgresUrl,
  readRecords,
  requireOwnFormat,
  requireOwnWal,
  sqliteError,
  sqliteSchemaDifferences,
  storeExists,
  storeLocation,
  tracedKysely,
} from '../../store/whole-store.ts';
import { copiedTables, copyStore, notEmpty } from './copy-store.ts';
import { type BackupContents, backUpStore, onBackup, verifyBackup } from './back-up-store.ts';
import {
  belongsToStore,
  invalid,
  removeFiles,
  replaceStoreFile,
  requireNoForeignFile,
  stageBackup,
} from './backup-file.ts';

/** A verified backup, as a new store of the newest schema with its rows. */
export interface OpenBackup {
  /** The path of the new store. */
  path: string;
  file: PrivateFile;
  contents: BackupContents;
  /** Schema differences of the backup; they are not restored. */
  differences: readonly SchemaDifference[];
}

/** SQLite settings for a file that others may have made or damaged. */
const UNTRUSTED = ['locking_mode = exclusive', 'trusted_schema = off', 'cell_size_check = on'];

/** The backup to open, and where to copy it. */
export interface OpenBackupOptions {
  /** An absolute path. */
  path: string;
  /** The path next to which its copy is made. */
  near: string;
  features: readonly FeatureTables[];
  auditKey: KeyObject | undefined;
  /** In entries of the audit log. */
  onVerified?: ProgressReport | undefined;
}

/**
 * Opens the contents of a backup while `work` runs, which can close and move them.
 * @throws KeysError BACKUP_INVALID, BACKUP_UNAVAILABLE, STORE_FOREIGN, STORE_NEWER, STORE_INSECURE; errors of `work`
 */
async function withBackup<Result>(
  { path, near, features, auditKey, onVerified }: OpenBackupOptions,
  work: (backup: OpenBackup) => Promise<Result>,
): Promise<Result> {
  const staged = await stageBackup(path, near);
  const rebuilt = `${near}.restore-${randomBytes(4).toString('hex')}`;
  let file: PrivateFile | undefined;
  try {
    requireWalOf(staged, path);
    const differences = await onBackup(path, () => rebuild({ staged, rebuilt, path, features }));
    removeFiles(staged);
    file = await onBackup(path, () => PrivateFile.open(rebuilt, { location: path, mustExist: true, features }));
    const opened = file;
    const contents = await onBackup(path, () => verifyBackup(opened, auditKey, onVerified));
    if ('broken' in contents.log)
      throw invalid(path, `entry ${contents.log.broken} of its audit log ${contents.log.reason}`);
    return await work({ path: rebuilt, file, contents, differences });
  } finally {
    await file?.close();
    for (const each of [staged, rebuilt]) removeFiles(each);
  }
}

/**
 * Makes a new store from the rows of a copied backup.
 * @returns the schema differences of the backup
 */
async function rebuild({
  staged,
  rebuilt,
  path,
  features,
}: Pick<OpenBackupOptions, 'path' | 'features'> & { staged: string; rebuilt: string }): Promise<SchemaDifference[]> {
  let driver: PrivateDatabase | undefined;
  try {
    driver = openPrivateDatabase(staged);
    for (const pragma of UNTRUSTED) driver.pragma(pragma);
    const file = PrivateFile.over(driver, { location: path, features });
    const version = await file.run((db) => requireOwnFormat(db, path));
    if (version === 0) throw invalid(path, 'it is an empty file');
    const differences = await file.run((db) => sqliteSchemaDifferences(db, features));
    // Checking pages evaluates expressions of tables and indexes, but not triggers and views.
    const runsExpressions = differences.every(
      ({ type, difference }) => difference === 'missing' || type === 'trigger' || type === 'view',
    );
    const damage = await findDamage(file, { runsExpressions, rowsAlone: true });
    if (damage !== undefined) throw invalid(path, damage);
    const records = await file.run(readRecords);
    driver.close();
    createStore(rebuilt);
    await copyInto(rebuilt, staged, { version, features, records });
    return differences;
  } catch (error) {
    throw sqliteError(error, path);
  } finally {
    driver?.close();
  }
}

/** @throws KeysError BACKUP_INVALID if the -wal file beside a backup belongs to another file */
function requireWalOf(staged: string, path: string): void {
  const main = new MainFile(staged);
  try {
    requireOwnWal(path, staged, main);
  } catch (error) {
    if (!isKeysError(error) || error.code !== 'STORE_REPLACED') throw error;
    throw invalid(path, `${path}-wal belongs to another file`, { cause: error });
  } finally {
    main.close();
  }
}

/** The schema of a backup, and of the new store for its rows. */
interface SchemaOfBackup {
  readonly version: number;
  readonly features: readonly FeatureTables[];
  /** The features with tables in the backup. */
  readonly records: readonly FeatureRecord[];
}

/**
 * Copies the rows of an unused file into a new store, without the file's schema, triggers and transient data.
 * @param to an empty file
 */
async function copyInto(to: string, from: string, schema: SchemaOfBackup): Promise<void> {
  const driver = openPrivateDatabase(to);
  try {
    // Copies rows even if they refer to missing keys; such rows are handled where they are used.
    for (const pragma of [...UNTRUSTED, 'foreign_keys = off']) driver.pragma(pragma);
    const db = tracedKysely(dialectOf(driver));
    const { version: newest, features, records } = schema;
    await migrateSqlite(db, { location: to, mustExist: false, features, newest, ran: ranOf(records) });
    await sql`attach ${from} as backup`.execute(db);
    await db.transaction().execute((transaction) => copyRows(transaction, schema));
  } finally {
    driver.close();
  }
}

async function copyRows(db: Kysely<Tables>, { features, records }: SchemaOfBackup): Promise<void> {
  const { rows: derived } = await sql<{ type: string; name: string; definition: string }>`
    select type, name, sql as definition from main.sqlite_schema
    where type in ('index', 'trigger') and sql is not null order by rowid`.execute(db);
  for (const { type, name } of derived) await sql`drop ${sql.raw(type)} main.${sql.id(name)}`.execute(db);
  const gone = goneFrom(records, features);
  // Tables renamed by later migrations have their old names until those run.
  const known = records.filter((record) => !gone.includes(record));
  for (const table of Object.keys(copiedTables(known))) {
    const { rows } = await sql<{ name: string }>`select name from pragma_table_info(${table}, 'main')`.execute(db);
    // With a qualified name, SQLite reports a missing column instead of taking the name for a text.
    const columns = rows.map(({ name }) => sql.ref(`${table}.${name}`));
    if (columns.length > 0 && table !== 'audit_head') {
      // Removes rows inserted by migrations of a feature.
      await sql`delete from main.${sql.id(table)}`.execute(db);
      await sql`insert into main.${sql.id(table)} (${sql.join(rows.map(({ name }) => sql.id(name)))})
        select ${sql.join(columns)} from backup.${sql.id(table)} not indexed`.execute(db);
    }
    await setImmediate();
  }
  for (const record of gone) await keepRows(db, record);
  // The head of the log is a view of this table.
  await sql`insert into main.key_changes (log_number, log_hash) select log_number, log_hash from backup.key_changes
    not indexed where log_hash is not null order by number desc limit 1`.execute(db);
  for (const { definition } of derived) await sql.raw(definition).execute(db);
}

/** Keeps the rows of a feature that is not installed. */
async function keepRows(db: Kysely<Tables>, { feature, migrations, tables }: FeatureRecord): Promise<void> {
  for (const [table, order] of Object.entries(tables)) {
    const { rows } = await sql<{ name: string }>`select name from pragma_table_info(${table}, 'backup')`.execute(db);
    const values = rows.map(({ name }) => sql`${name}, ${sql.ref(`${table}.${name}`)}`);
    if (rows.length === 0) continue;
    const columns = sql.join(order.map((column) => sql.ref(`${table}.${column}`)));
    await sql`insert into main.kept_rows (feature, table_name, number, migrations, "row")
      select ${feature}, ${table}, row_number() over (order by ${columns}), ${JSON.stringify(migrations)},
        json_object(${sql.join(values)})
      from backup.${sql.id(table)} not indexed`.execute(db);
  }
}

/** Options of a restore. */
interface RestoreOptions extends CatalogAdditions {
  /** The absolute path of the backup. */
  backup: string;
  database: string | undefined;
  env: NodeJS.ProcessEnv;
  busyTimeoutMs: number;
  /** The listeners of changes. */
  listeners: readonly OwnKeyListener[];
  /** The parts of features in a store. */
  features: readonly FeatureInStore[];
  /** The revoked keys to bring back. */
  bringBack: BringBack;
  /** True to replace a store that cannot be read, or is not to be compared. */
  isBlind: boolean;
  /** Called with the effects, to confirm them. False cancels the restore. */
  agree: (proposed: ProposedRestore) => Promise<boolean>;
  /** In entries of the audit log, in keys, and in bytes or rows. */
  onVerified?: ProgressReport | undefined;
  onCopied?: ProgressReport | undefined;
  onCompared?: ProgressReport | undefined;
  /** Milliseconds since 1970. Default: the clock of this machine. */
  clock?: () => number;
}

/** The effects of a restore, for confirmation. */
export interface ProposedRestore extends Pick<OpenBackup, 'contents' | 'differences'> {
  /** Undefined for a restore without a comparison. */
  plan: RestorePlan | undefined;
}

/** The effects of a restore, done or cancelled. */
export interface Restored extends ProposedRestore {
  /** See `Connection.location`. */
  store: string;
  /** The path of a copy of the store before the restore; undefined if there was none, or nothing was done. */
  previous: string | undefined;
}

/** Options of both restore modes. `database` is the path or URL of the store. */
type Target = RestoreOptions & { database: string; auditKey: ReturnType<typeof readAuditKey> };

/**
 * Replaces the keys of a store by those of a backup. Keys revoked since the backup stay revoked, unless they are to be
 * brought back, or the store cannot be compared with the backup.
 * @throws KeysError BACKUP_…, RESTORE_…, STORE_…, NOT_FOUND, INPUT_INVALID; errors of `agree`
 */
export async function restoreStore(options: RestoreOptions): Promise<Restored> {
  const { backup: path, env, features, onVerified } = options;
  const auditKey = readAuditKey(env);
  const database = storeLocation(options.database, env);
  const target = { ...options, database, auditKey };
  const isFile = !isPostgresUrl(database);
  if (isFile && existsSync(database) && belongsToStore(path, database))
    throw new KeysError('USAGE', `${printable(path, 200)} is the key store itself, or belongs to it. Name a backup.`);
  const present = options.isBlind ? undefined : await openPresent(target);
  try {
    // The copy may replace the file that the path leads to, so it must be on the same file system.
    const place = isFile && existsSync(database) ? realpathSync(database) : database;
    const near = isFile ? place : join(tmpdir(), 'svc-api');
    return await withBackup({ path, near, features, auditKey, onVerified }, (backup) =>
      present ? changeKeys(present, backup, target) : putInPlace(backup, target),
    );
  } finally {
    await present?.close();
  }
}

/** Codes of a store that this program cannot use any more. */
const LOST: ReadonlySet<ErrorCode> = new Set(['STORE_CORRUPT', 'STORE_NEWER']);

/** Opens the store for the comparison. @throws KeysError RESTORE_BLIND if it is lost, STORE_… */
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
    // A file with an unknown error counts as lost, too; a database server may work again soon.
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
    `${reason} Without it, svc-api cannot tell which keys were created, deleted, disabled or rotated since the backup. ` +
      'To restore the backup all the same, pass --force: all its keys then work as they did when it was made.',
    { cause },
  );
}

/** Changes the keys of the existing store in one transaction, after backing it up. */
async function changeKeys(
  store: Connection,
  { file, contents, differences }: OpenBackup,
  { backup: path, auditKey, bringBack, agree, onCompared: onProgress, onCopied, features, ...options }: Target,
): Promise<Restored> {
  const ports = portsOf(features);
  const present = createKeyRepository(store, auditKey, ports);
  const backup = createKeyRepository(file, undefined, ports);
  const { transactions, catalog, clock } = transactionsOn(present, options);
  const plan = await planRestore(bringBack, { backup, present, catalog, now: clock(), onProgress });
  if (!plan) throw notComparable(`The backup ${printable(path, 200)} is not one of the key store ${store.location}.`);
  const result = { contents, differences, plan, store: store.location };
  if (!(await agree(result))) return { ...result, previous: undefined };
  const previous = keptPath(store.dialect === 'sqlite' ? store.location : path);
  await backUpStore(store, previous, { overwrite: false, auditKey, onCopied });
  const broughtBack = plan.broughtBack.map(({ id }) => id);
  const [keys, steps] = await backup.write(async (writer) => {
    const found: RestoreStep[] = [];
    for (const { restoring } of options.listeners) {
      const step = await restoring?.(writer, broughtBack);
      if (step) found.push(step);
    }
    return [await writer.findBy('id', takenIds(plan)), found] as const;
  });
  const source = { backup: basename(path), head: contents.head };
  try {
    await transactions.run(OPERATOR, (transaction) => restoreKeys(transaction, { plan, keys, steps, source }), {
      revokes: true,
    });
  } catch (error) {
    // Nothing was changed. After other errors of a database server, that is uncertain.
    if (isKeysError(error) && error.code === 'RESTORE_OUTDATED') rmSync(previous, { force: true });
    throw error;
  }
  return { ...result, previous };
}

/** Replaces a store by the backup without comparing them: as a file, or in an empty database. */
async function putInPlace({ contents, differences, file, path }: OpenBackup, target: Target): Promise<Restored> {
  const { database, auditKey, features } = target;
  const isFile = !isPostgresUrl(database);
  // A dry run fails for the same reasons.
  await (isFile ? requireNoForeignFile(database) : requireEmptyDatabase(target));
  const result = { contents, differences, plan: undefined, store: formatLocation(target) };
  if (!(await target.agree(result))) return { ...result, previous: undefined };
  const { transactions } = transactionsOn(createKeyRepository(file, auditKey), target);
  const source = { backup: basename(target.backup), head: contents.head };
  await transactions.run(OPERATOR, async (transaction) => noteRestore(transaction, source), {
    revokes: true,
  });
  if (isFile) {
    await file.close();
    const kept = keptPath(database);
    const isReplaced = replaceStoreFile(path, database, kept);
    await leasesEnded(database);
    return { ...result, previous: isReplaced ? kept : undefined };
  }
  const to = await openConnection({ database, features });
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

/** Transactions of the operator. */
function transactionsOn(
  repository: KeyRepository,
  { clock = Date.now, listeners, ...additions }: CatalogAdditions & Pick<RestoreOptions, 'clock' | 'listeners'>,
) {
  const catalog = createCatalog(additions);
  const operator = operatorName();
  return { catalog, clock, transactions: new Transactions({ repository, catalog, clock, operator, listeners }) };
}

/** The path where a replaced store is kept. */
function keptPath(path: string): string {
  return `${path}.replaced-${new Date().toISOString().replaceAll(/[-:.]/g, '')}`;
}
