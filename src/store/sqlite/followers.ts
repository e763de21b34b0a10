import { randomUUID } from 'node:crypto';
import {
  type FSWatcher,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  watch,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Follower, Following } from '../../keys/repository/index.ts';

/** A change, as `key_changes` has it. */
export interface ChangeMark {
  readonly number: number;
  readonly mark: string;
}

/** What the file of a follower says. */
interface FollowerState {
  /** The last change that it has confirmed. */
  readonly seen: ChangeMark;
  /** By the clock of the machine that is never set, in milliseconds. */
  readonly leasedUntil: number;
  /** The start of the machine, since which that clock runs. */
  readonly boot: string;
  readonly pid: number;
}

/** For how long a follower is waited for that says nothing more, and how often it says something, in milliseconds. */
const LEASE_MS = 2000;
const RENEW_MS = 500;
/** How often a follower looks at the store by itself, should it not be told. */
const LOOK_MS = 100;
/** How long whoever has made a change sleeps before it looks again whether all have confirmed it. */
const WAIT_MS = 1;
/** After which time the file of a process that is gone is removed. */
const ABANDONED_MS = 3_600_000;

/** Of the machine, in milliseconds. All processes have the same, and nobody sets it. */
function monotonic(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

let knownBoot: string | undefined;
function bootId(): string {
  if (knownBoot !== undefined) return knownBoot;
  try {
    knownBoot = readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
  } catch {
    knownBoot = '';
  }
  return knownBoot;
}

function folderOf(store: string): string {
  return `${realpathSync(store)}-followers`;
}

/** The followers of a store that are to be waited for. */
function liveFollowers(folder: string): FollowerState[] {
  let names: string[];
  try {
    names = readdirSync(folder);
  } catch {
    return [];
  }
  const now = monotonic();
  return names.flatMap((name) => {
    const state = name.endsWith('.json') ? readState(join(folder, name)) : undefined;
    const isLive =
      state && state.boot === bootId() && state.leasedUntil > now && state.leasedUntil <= now + 2 * LEASE_MS;
    return isLive ? state : [];
  });
}

function readState(path: string): FollowerState | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as FollowerState;
  } catch {
    return undefined; // It has just ended.
  }
}

/**
 * Resolves once each follower of a store has confirmed a change, or its lease is over.
 * @param change the last one that was made; undefined where the store does not tell
 * @param isKnown whether the store has a change that a follower has confirmed: numbers come again in one put back
 */
export async function confirmedByFollowers(
  store: string,
  change: () => ChangeMark | undefined,
  isKnown: (seen: ChangeMark) => boolean,
): Promise<void> {
  const folder = folderOf(store);
  let followers = liveFollowers(folder);
  if (followers.length === 0) return;
  const made = change();
  if (!made) return;
  const isMissing = ({ seen }: FollowerState) => seen.number < made.number || !isKnown(seen);
  for (let isTold = false; (followers = liveFollowers(folder).filter(isMissing)).length > 0; isTold = true) {
    if (!isTold) tell(folder);
    await delay(WAIT_MS);
  }
}

/** Lets followers look at the store at once. */
function tell(folder: string): void {
  try {
    const now = new Date();
    utimesSync(folder, now, now);
  } catch {
    // They look by themselves.
  }
}

/** What somebody who follows an SQLite store needs of it. */
interface FollowedFile {
  readonly path: string;
  /** Looks whether something was changed, however recently that was done before. */
  look(): void;
  /** The last change that was seen so. */
  seen(): ChangeMark | undefined;
}

/**
 * Somebody who follows an SQLite store. Those who change it are other processes of the machine: they look for a file of
 * each follower beside the store, and wait until that says that it knows of the change. No row says so: it would be
 * written twice a second while nothing happens.
 */
export class FileFollowing implements Following {
  readonly #file: FollowedFile;
  readonly #follower: Follower;
  readonly #folder: string;
  readonly #path: string;
  readonly #timers: NodeJS.Timeout[];
  readonly #watcher: FSWatcher | undefined;
  /** The change that it has confirmed, and the one that it has told of. */
  #seen: ChangeMark;
  #told: ChangeMark;
  #leasedUntil = Number.NEGATIVE_INFINITY;
  #isStopped = false;

  /** @throws an error of the file system */
  constructor(file: FollowedFile, follower: Follower) {
    this.#file = file;
    this.#follower = follower;
    this.#folder = folderOf(file.path);
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    removeAbandoned(this.#folder);
    this.#path = join(this.#folder, `${randomUUID()}.json`);
    file.look();
    // Nobody was told anything yet.
    this.#seen = this.#told = file.seen() ?? { number: 0, mark: '' };
    this.#write();
    // What was changed before there was a lease.
    file.look();
    this.changed();
    this.#timers = [
      setInterval(() => this.#write(), RENEW_MS).unref(),
      setInterval(() => this.#look(), LOOK_MS).unref(),
    ];
    try {
      this.#watcher = watch(this.#folder, { persistent: false }, () => this.#look());
      this.#watcher.on('error', () => {});
    } catch {
      // There may be no room for more of them: it looks by itself.
    }
  }

  leasedUntil(): number {
    return this.#leasedUntil;
  }

  /** The store has looked, and may have seen changes. */
  changed(): void {
    const seen = this.#file.seen();
    if (!seen || isSame(seen, this.#told)) return;
    this.#told = seen;
    void this.#confirm(seen);
  }

  async #confirm(seen: ChangeMark): Promise<void> {
    await this.#follower.changed();
    // What came later may have been confirmed before.
    if (this.#isStopped || (seen.number < this.#seen.number && !isSame(seen, this.#told))) return;
    this.#seen = seen;
    this.#write();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const timer of this.#timers) clearInterval(timer);
    this.#watcher?.close();
    const isEnded = await Promise.race([this.#follower.ended().then(() => true), delay(WAIT_MS, false)]);
    // Otherwise, its lease ends by itself.
    if (isEnded) rmSync(this.#path, { force: true });
  }

  #look(): void {
    try {
      this.#file.look();
    } catch {
      // The next query tells what is wrong.
    }
  }

  #write(): void {
    try {
      const began = performance.now();
      const { number, mark } = this.#seen;
      const state = { seen: { number, mark }, leasedUntil: monotonic() + LEASE_MS, boot: bootId(), pid: process.pid };
      writeFileSync(`${this.#path}.new`, JSON.stringify(state satisfies FollowerState), { mode: 0o600 });
      renameSync(`${this.#path}.new`, this.#path);
      this.#leasedUntil = began + LEASE_MS;
    } catch {
      // Without room on the disk, the lease ends.
    }
  }
}

function isSame(one: ChangeMark, other: ChangeMark): boolean {
  return one.number === other.number && one.mark === other.mark;
}

/** Removes what processes have left that were killed. */
function removeAbandoned(folder: string): void {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat && Date.now() - stat.mtimeMs > ABANDONED_MS && !isRunning(readState(path)?.pid))
      rmSync(path, { force: true });
  }
}

function isRunning(pid: number | undefined): boolean {
  if (pid === undefined) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
