import { accessSync, chmodSync, constants, lstatSync, realpathSync, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { givesRights, isKeysError, KeysError } from '../../../keys/basics/index.ts';
import {
  findDamage,
  identifyStoreFile,
  isShared,
  knowingFollowers,
  MainFile,
  newestSchema,
  olderText,
  openDatabase,
  pendingFeatures,
  placeProblem,
  placeWarnings,
  PrivateFile,
  requireDriver,
  requireOwnFormat,
  requireOwnWal,
  requireSecureFile,
  sideFilesOf,
  sqliteError,
  sqliteSchemaDifferences,
  storeFileExists,
} from '../../../store/whole-store.ts';
import {
  failure,
  failureBy,
  type Finding,
  type InspectOptions,
  MIGRATES,
  ok,
  schemaFindings,
  skipped,
  warning,
} from './finding.ts';
import { inspectContents } from './inspect-contents.ts';

/** How long to wait for a lock, in milliseconds. */
const LOCK_WAIT_MS = 1000;
/** The cache for the file, in KiB: an index of a million keys, for looking up rows in random order. */
const CACHE_KIB = 48 * 1024;
const ELSEWHERE = 'Check --database and SVC_API_DATABASE, or restore a backup.';
const CREATE =
  'The first "svc-api apikey create" makes one. Otherwise check --database and SVC_API_DATABASE, or restore a backup.';
const REBUILD =
  'Find out who could write to the store. To have its rows in one that is made anew: "svc-api apikey backup", and ' +
  '"svc-api apikey restore" with --force.';

/** Checks an SQLite store without changing anything. */
export async function inspectSqlite(path: string, options: InspectOptions): Promise<Finding[]> {
  try {
    requireDriver();
    const exists = storeFileExists(path);
    if (exists) identifyStoreFile(path);
    if (!exists) {
      const problem = placeProblem(path);
      return [
        failure('STORE', `The key store ${path} does not exist, or is empty.`, problem ? ELSEWHERE : CREATE),
        ...(problem ? [failureBy('ACCESS', sqliteError(problem, path))] : skipped(['ACCESS'], 'There is no store.')),
        ...skipped(['SPACE', 'SCHEMA', 'INTEGRITY', 'AUDIT_LOG', 'CLOCK'], 'There is no store.'),
      ];
    }
  } catch (error) {
    return [failureBy('STORE', error), ...unopened(['ACCESS', 'SPACE'])];
  }
  const files = [...inspectAccess(path), inspectSpace(path)];
  let main: MainFile | undefined;
  let driver: ReturnType<typeof openDatabase> | undefined;
  try {
    main = new MainFile(path);
    const file = realpathSync(path);
    requireOwnWal(path, file, main);
    // The last writer applies and removes the files beside the store.
    const isInUse = ['-wal', '-journal'].some(
      (suffix) => (statSync(file + suffix, { throwIfNoEntry: false })?.size ?? 0) > 0,
    );
    driver = openDatabase(file, { fileMustExist: true, readonly: isInUse, timeout: LOCK_WAIT_MS });
    driver.pragma('trusted_schema = off');
    driver.pragma(`cache_size = ${-CACHE_KIB}`);
    const opened = PrivateFile.over(driver, { location: path, features: options.features });
    driver.pragma('query_only = on');
    return [...(await inspectOpened(opened, files, options))];
  } catch (error) {
    return [failureBy('STORE', sqliteError(error, path)), ...files, ...unopened([])];
  } finally {
    driver?.close();
    main?.close();
  }
}

async function inspectOpened(
  file: PrivateFile,
  files: readonly Finding[],
  options: InspectOptions,
): Promise<Finding[]> {
  const { location } = file;
  let version: number;
  try {
    version = await file.run((db) => requireOwnFormat(db, location));
  } catch (error) {
    if (!isKeysError(error) || !['STORE_NEWER', 'STORE_OLDER'].includes(error.code)) throw error;
    return [
      ok('STORE', `${location} is a key store.`),
      ...files,
      failureBy('SCHEMA', error),
      ...skipped(['INTEGRITY', 'AUDIT_LOG', 'CLOCK'], 'This version does not know its schema.'),
    ];
  }
  if (version === 0)
    throw new KeysError('STORE_UNAVAILABLE', `The key store ${location} is an empty file. Check the path.`);
  const damage = await findDamage(file);
  const { features } = options;
  const differences = await file.run((db) => sqliteSchemaDifferences(db, features));
  const pending = version === newestSchema() ? await file.run((db) => pendingFeatures(db, features)) : [];
  const isOld = version < newestSchema() || pending.length > 0;
  const old =
    pending.length > 0
      ? `The store ${olderText(version, pending)}`
      : `The store has schema ${version}; this version needs ${newestSchema()}`;
  return [
    ok('STORE', `${location} opens, and is a key store.`),
    ...files,
    ...(isOld ? [warning('SCHEMA', `${old}.`, `Copy the file first. ${MIGRATES}`)] : []),
    ...(isOld && differences.length === 0 ? [] : schemaFindings(version, differences, REBUILD)),
    damage === undefined
      ? ok('INTEGRITY', 'The file is sound.')
      : failure('INTEGRITY', `The file is damaged: ${damage}.`, 'Check the disk, and restore a backup.'),
    ...(isOld
      ? skipped(['AUDIT_LOG', 'CLOCK'], 'They can be checked once the store is migrated.')
      : await inspectContents(knowingFollowers(file), options)),
  ];
}

function unopened(others: readonly ('ACCESS' | 'SPACE')[]): Finding[] {
  return skipped([...others, 'SCHEMA', 'INTEGRITY', 'AUDIT_LOG', 'CLOCK'], 'The store cannot be opened.');
}

const [OTHERS, OTHERS_WRITE] = [0o077, 0o022];
const MEGABYTE = 1_000_000;
/** Free space below which changes will soon fail. */
const SCARCE_BYTES = 10 * MEGABYTE;

/** Checks the owner of the files of a store, and that no one else can use them. */
export function inspectAccess(path: string): Finding[] {
  const findings: Finding[] = [];
  // If others can write to the folder, the path can lead to another file by the time of the repair.
  let isRepairable = !isShared();
  try {
    requireSecureFile(path, { repairs: false });
  } catch (error) {
    isRepairable = false;
    findings.push(failureBy('ACCESS', sqliteError(error, path)));
  }
  try {
    const file = realpathSync(path);
    const { uid } = statSync(file);
    findings.push(...placeWarnings(path).map(({ problem, remedy }) => warning('ACCESS', `${problem}.`, `${remedy}.`)));
    for (const each of [file, ...sideFilesOf(file), `${file}-reserve`]) {
      const stat = lstatSync(each, { throwIfNoEntry: false });
      if (!stat) continue;
      const mode = `0${(stat.mode & 0o7777).toString(8)}`;
      if (givesRights(stat, OTHERS))
        findings.push(
          warning(
            'ACCESS',
            `Other users can use ${each}: its mode is ${mode}.`,
            `chmod 600 ${each}`,
            // Others could have changed a file that they can write to, so its owner has to check it first.
            isRepairable && !givesRights(stat, OTHERS_WRITE) ? () => chmodSync(each, 0o600) : undefined,
          ),
        );
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
      : [ok('ACCESS', `Only the user with the id ${uid} can use ${file} and its folder.`)];
  } catch (error) {
    return findings.length > 0 ? findings : [failureBy('ACCESS', sqliteError(error, path))];
  }
}

/** True if the file's mode lets this user read and write it, even on a read-only file system. */
function isUsable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EROFS';
  }
}

/** Checks the free space for a store, and for a backup beside it. */
export function inspectSpace(path: string): Finding {
  try {
    const folder = dirname(realpathSync(path));
    const { bavail, bsize } = statfsSync(folder);
    const [free, size] = [bavail * bsize, statSync(path).size];
    const text = `${folder} has ${megabytes(free)} MB of free space; the store has ${megabytes(size)} MB.`;
    const remedy = 'Make room, or move the store to a larger disk.';
    if (free < SCARCE_BYTES) return failure('SPACE', text, remedy);
    // A migration or a restore can need as much space as the store.
    return free < size + SCARCE_BYTES ? warning('SPACE', text, remedy) : ok('SPACE', text);
  } catch (error) {
    return failureBy('SPACE', sqliteError(error, path));
  }
}

function megabytes(bytes: number): string {
  return (bytes / MEGABYTE).toLocaleString('en-US', { maximumFractionDigits: 1 });
}
