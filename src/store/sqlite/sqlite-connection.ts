import { setTimeout as delay } from 'node:timers/promises';
import type { Kysely } from 'kysely';
import { isKeysError, KeysError } from '../../keys/basics/index.ts';
import type { Follower, FollowerNote, Following } from '../../keys/repository/index.ts';
import type { Connection, FoundRow, MustExist, WriteOptions, WriteWork } from '../connection.ts';
import { KeyChanges } from '../key-changes.ts';
import { Mutex } from '../mutex.ts';
import { retry } from '../retry.ts';
import type { FeatureTables, Tables } from '../tables.ts';
import { FileReplaced, OpenFile, type WaitTimes } from './open-file.ts';
import { confirmedByFollowers, FileFollowing, leasesEnded, notesOf } from './followers.ts';
import { Reserve, storeFileExists } from './sqlite-file.ts';
import { tryMigrations } from './sqlite-schema.ts';
import { createStore } from './store-access.ts';
import { isLocked, isMixedUp, isSqliteFailure, sqliteError } from './sqlite-errors.ts';
import { requireDriver } from './database.ts';

/** True if there is no store at a path. `createStore` says what is wrong with a path that cannot be read. */
function isNew(path: string): boolean {
  try {
    return !storeFileExists(path);
  } catch {
    return false;
  }
}

/** Twice the time that an idle server can take to notice that its file was replaced, in milliseconds. */
const REPLACED_WAIT_MS = 2000;
/** How often an idle connection checks whether its files are still there. */
const WATCH_MS = REPLACED_WAIT_MS / 2;
/**
 * How long a check of the file is trusted by every process that has it open, in milliseconds. A change of a key returns
 * only when all checks made before it are older.
 */
const MAX_CHECK_AGE_MS = 1;

interface SqliteOptions extends WaitTimes {
  /** The longest wait of a change for the lock, in total. Default: `lockWaitMs`. */
  writeWaitMs?: number;
  mustExist: MustExist;
  features: readonly FeatureTables[];
}

/** An open SQLite store that follows its path: if another file is put there, it opens that one. */
export class SqliteConnection implements Connection {
  readonly dialect = 'sqlite';
  readonly location: string;
  /** True if opening it created the file. */
  readonly created: boolean;
  readonly features: readonly FeatureTables[];
  readonly #waits: WaitTimes;
  readonly #writeWaitMs: number;
  readonly #reserve: Reserve;
  /** Undefined while there is no file at the path. */
  #file: OpenFile | undefined;
  #opening: Promise<OpenFile> | undefined;
  readonly #watch: NodeJS.Timeout;
  /** Only one writer of this process at a time waits for the lock of the file, so that many do not retry at once. */
  readonly #mutex = new Mutex();
  #checkedAt = Number.NEGATIVE_INFINITY;
  #dataVersion: number | undefined;
  readonly #changes = new KeyChanges();
  #following: FileFollowing | undefined;
  #isClosed = false;

  private constructor(
    location: string,
    created: boolean,
    { writeWaitMs, features, ...waits }: WaitTimes & Required<Pick<SqliteOptions, 'writeWaitMs' | 'features'>>,
  ) {
    this.features = features;
    this.location = location;
    this.#writeWaitMs = writeWaitMs;
    this.created = created;
    this.#waits = waits;
    this.#reserve = new Reserve(location);
    this.#watch = setInterval(() => this.#checkIdleFile(), WATCH_MS).unref();
  }

  /** Opens the store at an absolute path, or creates it unless it must exist. @throws KeysError STORE_… */
  static async open(
    path: string,
    { lockWaitMs, writeWaitMs = lockWaitMs, busyTimeoutMs, mustExist, features }: SqliteOptions,
  ): Promise<SqliteConnection> {
    requireDriver();
    let connection;
    try {
      if (!mustExist && isNew(path)) await tryMigrations(features);
      const created = !mustExist && createStore(path);
      connection = new SqliteConnection(path, created, { lockWaitMs, writeWaitMs, busyTimeoutMs, features });
      await connection.#open(mustExist);
      // A caller that needs no migration only reads, such as completion in a backup.
      if (mustExist !== 'migrated') connection.#reserve.keep();
      return connection;
    } catch (error) {
      await connection?.close();
      throw sqliteError(error, path);
    }
  }

  run<Result>(work: (db: Kysely<Tables>) => Promise<Result>): Promise<Result> {
    return this.#runUntil(performance.now() + this.#waits.lockWaitMs, ({ db }) => work(db));
  }

  async write<Result>(
    work: WriteWork<Result>,
    { revokes = false, counts = false }: WriteOptions = {},
  ): Promise<Result> {
    const deadline = performance.now() + this.#writeWaitMs;
    let keysChanged = false;
    const noteChanged = () => void (keysChanged = true);
    const changeUntil = (end: number) => this.#runUntil(end, (file) => file.change((db) => work(db, noteChanged)));
    // Others get their turns between attempts.
    if (counts)
      return retry(() => this.#mutex.run(this.#writeWaitMs, () => changeUntil(0)), {
        isRetryable: (error) => isKeysError(error) && error.code === 'STORE_LOCKED' && performance.now() <= deadline,
      });
    const change = () => changeUntil(deadline);
    const result = await this.#mutex.run(this.#writeWaitMs, () => (revokes ? this.#reserve.use(change) : change()));
    if (keysChanged) {
      await Promise.all([outdateChecks(), this.#followed()]);
    }
    return result;
  }

  /**
   * Runs work, and repeats it until a deadline of `performance.now()` if it has changed nothing. Waits for mismatched
   * side files only until the programs that have them open must have noticed.
   */
  async #runUntil<Result>(deadline: number, work: (file: OpenFile) => Promise<Result>): Promise<Result> {
    const mixedUpUntil = Math.min(deadline, performance.now() + REPLACED_WAIT_MS);
    const isRetryable = (error: unknown) =>
      isMixedUp(findCause(error))
        ? performance.now() <= mixedUpUntil
        : (isLocked(error) || error instanceof FileReplaced) && performance.now() <= deadline;
    try {
      return await retry(async () => this.#onFile(await this.#currentFile(), work), { isRetryable });
    } catch (error) {
      const cause = findCause(error);
      if (!(cause instanceof FileReplaced)) throw sqliteError(cause, this.location);
      throw new KeysError(
        'STORE_REPLACED',
        `The key store ${this.location} was replaced while it was used. Try again.`,
      );
    }
  }

  /** Between two queries, the file may turn out to be replaced, and is closed then. @throws FileReplaced */
  async #onFile<Result>(file: OpenFile, work: (file: OpenFile) => Promise<Result>): Promise<Result> {
    try {
      return await work(file);
    } catch (error) {
      if (this.#isClosed || isKeysError(error) || error instanceof FileReplaced || isLocked(error)) throw error;
      if (file === this.#file && !this.#isReplaced(file, error)) throw error;
      throw new FileReplaced('', { cause: error });
    }
  }

  /** True if work failed before changing anything because the file was replaced. The file is closed then. */
  #isReplaced(file: OpenFile, error: unknown): boolean {
    if (!isMixedUp(error)) {
      try {
        if (file.isSurelyCurrent()) return false;
        this.#leaveFile(file);
      } catch (reason) {
        // The next attempt reports the reason.
        return isKeysError(reason) || reason instanceof FileReplaced || isLocked(reason);
      }
    } else if (file.abandon()) this.#forgetFile();
    return true;
  }

  /** The file at the path now. */
  async #currentFile(): Promise<OpenFile> {
    if (this.#isClosed) throw new Error('The store was closed.');
    this.#checkFile();
    return this.#file ?? this.#openFile(true);
  }

  /** Opens the file for the first time. An idle server may not have noticed yet that it was replaced. */
  async #open(mustExist: MustExist): Promise<void> {
    const deadline = performance.now() + Math.min(REPLACED_WAIT_MS, this.#waits.lockWaitMs);
    const isRetryable = (error: unknown) =>
      ((isKeysError(error) && error.code === 'STORE_REPLACED') || isMixedUp(error) || isLocked(error)) &&
      performance.now() <= deadline;
    const open = async () => {
      if (!this.#file) await this.#openFile(mustExist);
      this.#checkFile();
    };
    await retry(open, { isRetryable });
  }

  /** Opens the file. An empty file becomes a store, unless the store must exist, as it must after the first time. */
  async #openFile(mustExist: MustExist): Promise<OpenFile> {
    const options = { ...this.#waits, mustExist, features: this.features, committed: () => this.#recheckFile() };
    // SQLite needs room for its -shm file: 32 KiB.
    this.#opening ??= this.#reserve
      .use(() => OpenFile.open(this.location, options))
      .finally(() => (this.#opening = undefined));
    this.#file = await this.#opening;
    return this.#file;
  }

  checkWhole(): Promise<void> {
    return this.#runUntil(0, async (file) => {
      if (file.isWhole()) return;
      const what = `The key store ${this.location} is damaged: its end is missing.`;
      throw new KeysError('STORE_CORRUPT', `${what} Stop what uses it, and restore it from a backup.`);
    });
  }

  isFailure(error: unknown): boolean {
    return isSqliteFailure(error);
  }

  revision(): number | undefined {
    try {
      this.#checkFile();
    } catch {
      return undefined; // The next query reports what is wrong.
    }
    return this.#file && this.#changes.revision;
  }

  keysChangedSince(revision: number): readonly string[] | 'any' {
    return this.#changes.since(revision);
  }

  findByDigest(digest: string): FoundRow | undefined {
    try {
      this.#checkFile();
      return this.#file?.findByDigest(digest);
    } catch {
      return undefined; // `run` reports what is wrong.
    }
  }

  /** Checks whether another file is at the path and whether keys were changed. */
  #checkFile(): void {
    const now = performance.now();
    if (now - this.#checkedAt < MAX_CHECK_AGE_MS) return;
    if (this.#file && !this.#file.isCurrent()) this.#leaveFile(this.#file);
    const version = this.#file?.dataVersion();
    if (version !== this.#dataVersion) {
      const changed = this.#file?.changedKeys() ?? [];
      if (changed === 'any') this.#changes.addUnknown();
      else this.#changes.add(changed);
    }
    this.#dataVersion = version;
    if (this.#file) this.#checkedAt = now;
    this.#following?.changed();
  }

  async follow(follower: Follower): Promise<Following> {
    await this.#currentFile();
    const seen = {
      path: this.location,
      look: () => {
        this.#checkedAt = Number.NEGATIVE_INFINITY;
        this.#checkFile();
      },
      seen: () => this.#file?.seenChange,
    };
    this.#following = new FileFollowing(seen, follower);
    return this.#following;
  }

  async notes(): Promise<FollowerNote[]> {
    return notesOf(this.location);
  }

  /** Resolves once no follower accepts a key in its state before the latest change. */
  async #followed(): Promise<void> {
    try {
      if (this.#following) this.#checkFile();
      await confirmedByFollowers(
        this.location,
        () => this.#file?.latestChange(),
        (seen) => this.#file?.hasChange(seen) === true,
      );
    } catch {
      // The change was made. The next query reports the file's problem; its followers cannot be read.
      await leasesEnded(this.location);
    }
  }

  /** `data_version` does not count this connection's own writes. */
  #recheckFile(): void {
    this.#dataVersion = undefined;
    this.#checkedAt = Number.NEGATIVE_INFINITY;
  }

  /** Closes a replaced file, which a command may be waiting for, and refills the reserve if there is space again. */
  #checkIdleFile(): void {
    if (this.#file) this.#reserve.keep();
    try {
      if (this.#file && !this.#file.isSurelyCurrent()) this.#leaveFile(this.#file);
    } catch {
      // The next query reports the problem.
    }
  }

  /** @throws KeysError STORE_REPLACED while another program still reads it; errors of `OpenFile.leave` */
  #leaveFile(file: OpenFile): void {
    if (!file.leave())
      throw new KeysError(
        'STORE_REPLACED',
        `The key store ${this.location} was replaced, but another program still reads the file that was there ` +
          'before. Stop that program.',
      );
    this.#forgetFile();
  }

  #forgetFile(): void {
    this.#file = undefined;
    this.#recheckFile();
  }

  /** Does nothing: a file has no notifications, and is checked instead. */
  watchHearing(): void {}

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#watch);
    // A change in progress completes; waiting ones fail.
    await this.#mutex.run(this.#waits.lockWaitMs, async () => {}).catch(() => {});
    const file = this.#file;
    this.#file = undefined;
    if (!file) return;
    const deadline = performance.now() + this.#waits.lockWaitMs;
    const leave = async () => !file.isSurelyCurrent() && file.leave();
    const isRetryable = (error: unknown) => isLocked(error) && performance.now() <= deadline;
    // A program that writes for longer takes care of the side files.
    const isLeft = await retry(leave, { isRetryable }).catch(() => file.abandon());
    if (!isLeft) file.close();
  }
}

/** The cause of a replacement: mismatched side files are an error of their own. */
function findCause(error: unknown): unknown {
  return error instanceof FileReplaced && isMixedUp(error.cause) ? error.cause : error;
}

/** Waits until no process trusts a check of the file from before this call. */
async function outdateChecks(): Promise<void> {
  const changedAt = performance.now();
  // A timer can fire early, by less than a millisecond.
  while (performance.now() - changedAt <= MAX_CHECK_AGE_MS) await delay(MAX_CHECK_AGE_MS);
}
