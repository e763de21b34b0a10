import { randomUUID } from 'node:crypto';
import {
  closeSync,
  constants,
  type FSWatcher,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  watch,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import { type Follower, type Following, type KnownEdge, STORE_LEASE_MS } from '../../keys/repository/index.ts';
import { edgesAfter } from '../connection.ts';

/** A change, as `key_changes` has it. */
export interface ChangeMark {
  readonly number: number;
  readonly mark: string;
}

/** What the file of a follower says, in the later one of its two places. */
interface FollowerState {
  /** Grows with each time that it is written. */
  readonly count: number;
  /** The last change that it has confirmed. */
  readonly seen: ChangeMark;
  /** By the clock of the machine that is never set, in milliseconds. */
  readonly leasedUntil: number;
  /** The start of the machine, since which that clock runs. */
  readonly boot: string;
  readonly pid: number;
}

/** What the file beside that one says, while others are told by it: at a time of that clock. */
interface ToldEdges {
  readonly at: number;
  readonly boot: string;
  readonly edges: readonly KnownEdge[];
}

/** How often a follower says that it is there, in milliseconds. */
const RENEW_MS = 500;
/** How often a follower looks at the store by itself that cannot be told. */
const LOOK_MS = 250;
/** How long whoever has made a change sleeps before it looks again whether all have confirmed it. */
const WAIT_MS = 1;
/** How the names of files end: of a follower, and of whom that tells of changes. */
const [STATE, EDGES] = ['.json', '.edges'] as const;
/** How much each of the two places of a state takes, in bytes. */
const PLACE_BYTES = 512;
/** After which time the file of a process that is gone is removed. */
const ABANDONED_MS = 3_600_000;

/** Of the machine, in milliseconds. All processes have the same, and nobody sets it. */
function monotonic(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

let knownBoot: string | undefined;
/** The id of the machine's boot; empty where it has none. */
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

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

/** The followers of a store that are to be waited for. @throws an error of the file system */
function liveFollowers(folder: string): FollowerState[] {
  const now = monotonic();
  return namesIn(folder).flatMap((name) => {
    const state = name.endsWith(STATE) ? readState(join(folder, name)) : undefined;
    const isLive =
      state && state.boot === bootId() && state.leasedUntil > now && state.leasedUntil <= now + 2 * STORE_LEASE_MS;
    return isLive ? state : [];
  });
}

/**
 * What a file says; undefined if it has just been removed. It is written in place, as to replace a file has the system
 * write to the disk: one place after the other, so that of two that are read amid that, one is whole.
 */
function readState(path: string): FollowerState | undefined {
  const text = readText(path) ?? '';
  const places = [text.slice(0, PLACE_BYTES), text.slice(PLACE_BYTES)].flatMap((place) => {
    const state = place.slice(CHECKSUM_LENGTH).trimEnd();
    return place.startsWith(checksumOf(state)) ? (JSON.parse(state) as FollowerState) : [];
  });
  return places.toSorted((one, other) => other.count - one.count)[0];
}

const CHECKSUM_LENGTH = 9;
function checksumOf(state: string): string {
  return `${crc32(state)
    .toString(16)
    .padStart(CHECKSUM_LENGTH - 1, '0')} `;
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1');
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '');
}

/** The edges that followers of a store have told of, each as it is now. @throws an error of the file system */
export function toldEdges(store: string): KnownEdge[] {
  const folder = folderOf(store);
  return namesIn(folder).flatMap((name) => {
    const told = name.endsWith(EDGES) ? readTold(join(folder, name)) : undefined;
    return told?.boot === bootId() ? edgesAfter(told.edges, monotonic() - told.at) : [];
  });
}

/** Undefined where there is nothing, or what a power failure has left. */
function readTold(path: string): ToldEdges | undefined {
  try {
    return JSON.parse(Buffer.from(readText(path) ?? '', 'latin1').toString()) as ToldEdges;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Waits until all leases are over that followers of a store may have by now: what they see of it cannot be told. */
export async function leasesEnded(store: string): Promise<void> {
  let hasFollowers = true;
  try {
    hasFollowers = liveFollowers(folderOf(store)).length > 0;
  } catch {
    // There may be some.
  }
  if (hasFollowers) await delay(STORE_LEASE_MS);
}

/**
 * Resolves once each follower of a store has confirmed a change, or its lease is over.
 * @throws an error of the file system
 * @param change the last one that was made; undefined where the store does not tell
 * @param isKnown whether the store has a change that a follower has confirmed: numbers come again in one put back
 */
export async function confirmedByFollowers(
  store: string,
  change: () => ChangeMark | undefined,
  isKnown: (seen: ChangeMark) => boolean,
): Promise<void> {
  const end = monotonic() + STORE_LEASE_MS;
  const folder = folderOf(store);
  if (liveFollowers(folder).length === 0) return;
  const made = change();
  if (!made) return;
  const isBehind = ({ seen }: FollowerState) => seen.number < made.number || !isKnown(seen);
  // One that cannot see the change relies on nothing later either, however often it says that it is there.
  for (let isTold = false; monotonic() < end && liveFollowers(folder).some(isBehind); isTold = true) {
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
  readonly #id = randomUUID();
  #folder: string;
  /** Its file, once it is open. */
  #fd: number | undefined;
  #count = 0;
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
    file.look();
    // Nobody was told anything yet.
    this.#seen = this.#told = file.seen() ?? { number: 0, mark: '' };
    this.#write();
    // What was changed before there was a lease.
    file.look();
    this.changed();
    try {
      this.#watcher = watch(this.#folder, { persistent: false }, (_, name) => {
        // What it writes itself tells it nothing.
        if (name?.startsWith(this.#id) !== true) this.#look();
      });
      this.#watcher.on('error', () => {});
    } catch {
      // There may be no room for more of them: it looks by itself.
    }
    const renew = () => {
      this.#write();
      this.#look();
    };
    this.#timers = [setInterval(renew, RENEW_MS).unref()];
    if (!this.#watcher) this.#timers.push(setInterval(() => this.#look(), LOOK_MS).unref());
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

  async tell(edges: readonly KnownEdge[]): Promise<void> {
    const told: ToldEdges = { at: monotonic(), boot: bootId(), edges };
    const path = this.#pathOf(EDGES);
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    writeFileSync(`${path}.new`, JSON.stringify(told), { mode: 0o600 });
    renameSync(`${path}.new`, path);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#leasedUntil = Number.NEGATIVE_INFINITY;
    for (const timer of this.#timers) clearInterval(timer);
    this.#watcher?.close();
    const isEnded = await Promise.race([this.#follower.ended().then(() => true), delay(WAIT_MS, false)]);
    // Otherwise, its lease ends by itself.
    if (isEnded) rmSync(join(this.#folder, this.#id + STATE), { force: true });
    this.#close();
  }

  #look(): void {
    try {
      this.#file.look();
    } catch {
      // The next query tells what is wrong.
    }
  }

  #write(): void {
    if (this.#isStopped) return;
    try {
      const began = performance.now();
      const { number, mark } = this.#seen;
      const count = (this.#count += 1);
      const leasedUntil = monotonic() + STORE_LEASE_MS;
      const state = { count, seen: { number, mark }, leasedUntil, boot: bootId(), pid: process.pid };
      const text = JSON.stringify(state satisfies FollowerState);
      this.#put(checksumOf(text) + text, (count % 2) * PLACE_BYTES);
      this.#leasedUntil = began + STORE_LEASE_MS;
    } catch {
      // Without room on the disk, the lease ends.
    }
  }

  #put(state: string, position: number): void {
    const path = this.#pathOf(STATE);
    if (this.#fd === undefined || statSync(path, { throwIfNoEntry: false })?.ino !== fstatSync(this.#fd).ino) {
      this.#close();
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
      this.#fd = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600);
    }
    const place = Buffer.alloc(PLACE_BYTES, ' ');
    if (place.write(state, 'latin1') < state.length) throw new RangeError('There is no room for the state.');
    writeSync(this.#fd, place, 0, PLACE_BYTES, position);
  }

  /** Its folder may have been removed or moved, and a link may have come to lead to another store. */
  #pathOf(ending: typeof STATE | typeof EDGES): string {
    this.#folder = folderOf(this.#file.path);
    return join(this.#folder, this.#id + ending);
  }

  #close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
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
