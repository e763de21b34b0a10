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
import { type Follower, type FollowerNote, type Following, STORE_LEASE_MS } from '../../keys/repository/index.ts';
import { type Connection, connectionOver } from '../connection.ts';

/** A change in `key_changes`. */
export interface ChangeMark {
  readonly number: number;
  readonly mark: string;
}

/** The state in a follower's file: the later one of its two slots. */
interface FollowerState {
  /** Grows with each write. */
  readonly count: number;
  /** The last confirmed change. */
  readonly seen: ChangeMark;
  /** By the machine's monotonic clock, in milliseconds. */
  readonly leasedUntil: number;
  /** The boot of the machine, which that clock counts from. */
  readonly boot: string;
  readonly pid: number;
}

/** The contents of a follower's second file: its note, and a time of that clock. */
interface WrittenNote {
  readonly at: number;
  readonly boot: string;
  readonly text: string;
}

/** How often a follower renews its lease, in milliseconds. */
const RENEW_MS = 500;
/** How often a follower without notifications looks at the store by itself. */
const LOOK_MS = 250;
/** The pause of a writer between two checks whether all have confirmed its change. */
const WAIT_MS = 1;
/** The suffixes of a follower's files: its state, and its note. */
const [STATE, NOTE] = ['.json', '.note'] as const;
/** The size of each of the two slots of a state, in bytes. */
const PLACE_BYTES = 512;
/** How long the file of a vanished process is kept. */
const ABANDONED_MS = 3_600_000;

/** The machine's monotonic clock in milliseconds, which all processes share. */
function monotonic(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

let knownBoot: string | undefined;
/** The id of the machine's boot; empty if it has none. */
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

/** The followers of a store that changes must wait for. @throws an error of the file system */
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
 * The state in a file; undefined if it was just removed. Files are written in place, since replacing one forces a write
 * to disk. Only one of the two slots is written at a time, so the other is always intact.
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

/** The notes of the followers of a store. @throws an error of the file system */
export function notesOf(store: string): FollowerNote[] {
  const folder = folderOf(store);
  return namesIn(folder).flatMap((name) => {
    const note = name.endsWith(NOTE) ? readNote(join(folder, name)) : undefined;
    return note?.boot === bootId() ? { text: note.text, ageMs: monotonic() - note.at } : [];
  });
}

/** Undefined if there is nothing, or only the remains of a power failure. */
function readNote(path: string): WrittenNote | undefined {
  try {
    return JSON.parse(Buffer.from(readText(path) ?? '', 'latin1').toString()) as WrittenNote;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Waits until all leases that followers can have by now have expired, if their states cannot be read. */
export async function leasesEnded(store: string): Promise<void> {
  let hasFollowers = true;
  try {
    hasFollowers = liveFollowers(folderOf(store)).length > 0;
  } catch {
    // Assume that there are some.
  }
  if (hasFollowers) await delay(STORE_LEASE_MS);
}

/**
 * Resolves once each follower of a store has confirmed a change, or its lease has expired.
 * @throws an error of the file system
 * @param change the last one made; undefined if the store does not tell
 * @param isKnown true if the store has the change that a follower has confirmed: numbers repeat in a restored store
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
  // Waits no longer than a lease: a follower that cannot see the change trusts nothing after that, however often it
  // renews its lease.
  for (let isTold = false; monotonic() < end && liveFollowers(folder).some(isBehind); isTold = true) {
    if (!isTold) tell(folder);
    await delay(WAIT_MS);
  }
}

/** Makes followers look at the store at once. */
function tell(folder: string): void {
  try {
    const now = new Date();
    utimesSync(folder, now, now);
  } catch {
    // Followers also look by themselves.
  }
}

/** The parts of an SQLite store that a follower needs. */
interface FollowedFile {
  readonly path: string;
  /** Checks for changes, even right after another check. */
  look(): void;
  /** The last change seen by that. */
  seen(): ChangeMark | undefined;
}

/**
 * A follower of an SQLite store. Writers are other processes of the machine: they look for a file of each follower
 * beside the store, and wait until it confirms the change. This is not a row of the store, which would be written twice
 * a second even when idle.
 */
export class FileFollowing implements Following {
  readonly #file: FollowedFile;
  readonly #follower: Follower;
  readonly #id = randomUUID();
  #folder: string;
  /** Its file, once open. */
  #fd: number | undefined;
  #count = 0;
  readonly #timers: NodeJS.Timeout[];
  readonly #watcher: FSWatcher | undefined;
  /** The change that it has confirmed, and the one that it has passed on. */
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
    // Nothing has been passed on yet.
    this.#seen = this.#told = file.seen() ?? { number: 0, mark: '' };
    this.#write();
    // Reads changes from before the lease began.
    file.look();
    this.changed();
    try {
      this.#watcher = watch(this.#folder, { persistent: false }, (_, name) => {
        // Ignores its own writes.
        if (name?.startsWith(this.#id) !== true) this.#look();
      });
      this.#watcher.on('error', () => {});
    } catch {
      // The system's limit of watches may be reached; it looks by itself instead.
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

  /** Called after the store was checked and may have seen changes. */
  changed(): void {
    const seen = this.#file.seen();
    if (!seen || isSame(seen, this.#told)) return;
    this.#told = seen;
    void this.#confirm(seen);
  }

  async #confirm(seen: ChangeMark): Promise<void> {
    await this.#follower.changed();
    // A later change may already be confirmed.
    if (this.#isStopped || (seen.number < this.#seen.number && !isSame(seen, this.#told))) return;
    this.#seen = seen;
    this.#write();
  }

  async note(text: string): Promise<void> {
    const note: WrittenNote = { at: monotonic(), boot: bootId(), text };
    const path = this.#pathOf(NOTE);
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    writeFileSync(`${path}.new`, JSON.stringify(note), { mode: 0o600 });
    renameSync(`${path}.new`, path);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#leasedUntil = Number.NEGATIVE_INFINITY;
    for (const timer of this.#timers) clearInterval(timer);
    this.#watcher?.close();
    const isEnded = await Promise.race([this.#follower.ended().then(() => true), delay(WAIT_MS, false)]);
    // Otherwise the lease expires by itself.
    if (isEnded) rmSync(join(this.#folder, this.#id + STATE), { force: true });
    this.#close();
  }

  #look(): void {
    try {
      this.#file.look();
    } catch {
      // The next query reports the problem.
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
      // On a full disk, the lease expires.
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

  /** Its folder may have been removed or moved, or a link may lead to another store by now. */
  #pathOf(ending: typeof STATE | typeof NOTE): string {
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

/** Removes files of processes that were killed. */
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

/** A connection to a file that also tells who follows it. */
export function knowingFollowers(file: Connection): Connection {
  return connectionOver(file, { notes: async () => notesOf(file.location) });
}
