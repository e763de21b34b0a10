import { hash, randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Applied } from '../apply.ts';
import type { DeclaredKey } from '../declaration.ts';
import { type DocumentIssue, KeysError, formatList, printable } from '../../../keys/basics/index.ts';
import { readSecret } from '../../../keys/secret/index.ts';
import { firstOf } from '../../../cli/output.ts';

/** The longest file name that common file systems accept. */
const MAX_NAME_BYTES = 255;

export function validateFileNames(keys: readonly DeclaredKey[]): DocumentIssue[] {
  return keys.flatMap(({ name }, index) => {
    const length = Buffer.byteLength(name);
    if (length <= MAX_NAME_BYTES) return [];
    const message = `The name is ${length} bytes long; with --secrets-dir, at most ${MAX_NAME_BYTES} are allowed.`;
    return [{ path: ['keys', index, 'name'], message }];
  });
}

interface SecretFile {
  /** Hidden file with the secret until it is published. */
  hidden: string;
  path: string;
  /** Keeps the file that was at `path` before, if there was one. */
  previous: string;
}

/** Secrets in a folder, each in a file that has the name of its key, readable by its owner alone. */
export class SecretFiles {
  readonly #folder: string;
  readonly #location: string;
  #files: SecretFile[] = [];
  #published: SecretFile[] = [];

  /** @param location of the key store */
  constructor(folder: string, location: string) {
    this.#folder = folder;
    this.#location = location;
  }

  pathOf(name: string): string {
    return join(this.#folder, name);
  }

  /** Writes secrets to hidden files, flushed to the disk. @throws KeysError OUTPUT_FAILED with nothing written */
  write(secrets: Applied['created']): void {
    this.remove();
    this.#orFail(() => {
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
      for (const { key, apiKey } of secrets) this.#writeHidden(key, this.pathOf(apiKey.name));
      // All are written before the first is flushed: the disk then flushes the rest nearly at once.
      for (const { hidden } of this.#files) flush(hidden);
    });
  }

  /**
   * Gives the files their names, in place of older files.
   * @throws KeysError OUTPUT_FAILED with the older files as before
   */
  publish(): void {
    this.#orFail(() => {
      for (const file of this.#files) {
        if (exists(file.path)) linkSync(file.path, file.previous);
        renameSync(file.hidden, file.path);
        this.#published.push(file);
      }
      flush(this.#folder);
    });
    for (const { previous } of this.#files) rmSync(previous, { force: true });
    [this.#files, this.#published] = [[], []];
  }

  /** Removes files that were not finally published, and restores each older file, even if another one fails. */
  remove(): void {
    for (const { path, previous } of this.#published)
      attempt(() => (exists(previous) ? renameSync(previous, path) : rmSync(path, { force: true })));
    for (const { hidden, previous } of this.#files)
      for (const path of [hidden, previous]) attempt(() => rmSync(path, { force: true }));
    [this.#files, this.#published] = [[], []];
  }

  #writeHidden(secret: string, path: string): void {
    // A file cannot take the place of a folder: that would be known only after the commit.
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory())
      throw Object.assign(new Error(path), { code: 'EISDIR' });
    const hidden = join(this.#folder, hiddenName(this.#location, randomBytes(8).toString('hex')));
    this.#files.push({ hidden, path, previous: `${hidden}-previous` });
    writeFileSync(hidden, `${secret}\n`, { flag: 'wx', mode: 0o600 });
  }

  #orFail(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.remove();
      const { code = 'UNKNOWN' } = error as NodeJS.ErrnoException;
      const folder = printable(this.#folder, 200);
      const message = `The secrets could not be written to ${folder} (${code}). Nothing was changed.`;
      throw new KeysError('OUTPUT_FAILED', message, { cause: error });
    }
  }
}

/** Checks for a file or a link, even a dangling one. */
function exists(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

function attempt(work: () => void): void {
  try {
    work();
  } catch {
    // The failure that led here is the one to report.
  }
}

/** Flushes the content of a file, or the entries of a folder, to disk. */
function flush(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Name of a hidden file of `SecretFiles`: its store, place and process, and whether it keeps an older file. */
const HIDDEN =
  /^\.svc-api-(?<store>[0-9a-f]{8})-(?<place>[0-9a-f]{8})-(?<pid>\d{1,10})-[0-9a-f]{16}(?<previous>-previous)?$/;
/** Far more than a secret takes. */
const MAX_BYTES = 1000;
const MAX_SHOWN = 5;
/** Maximum time that an apply works on its files, in milliseconds. */
const MAX_AGE_MS = 600_000;

/** The name of a hidden file of this process, to which `random` adds 16 hexadecimal digits. */
export function hiddenName(location: string, random: string): string {
  return `.svc-api-${tagOf(location)}-${PLACE}-${process.pid}-${random}`;
}

type Outcome = 'Removed' | 'Recovered' | 'Left alone';
/** Reasons, shown after the names of files. */
const REASONS: Readonly<Record<Outcome, string>> = {
  Removed: 'secrets that work nowhere, or that another file has',
  Recovered: 'secrets that work, now in the files that were meant for them',
  'Left alone': 'not secrets, not to be read, or their place is taken by another secret that works',
};

interface SecretFolder {
  folder: string;
  location: string;
  nameOf: (secret: string) => Promise<string | undefined>;
}

/**
 * Tidies a folder of secrets after an apply to the same store was killed. A valid secret is moved to its file; others
 * are removed.
 * @returns sentences about what was done
 */
export async function tidyLeftovers(secrets: SecretFolder): Promise<string[]> {
  const done: { outcome: Outcome; file: string }[] = [];
  for (const file of leftoversIn(secrets)) {
    const outcome = await tidy(join(secrets.folder, file), secrets).catch(classifyFailure);
    if (outcome) done.push({ file, outcome });
  }
  return [...Map.groupBy(done, ({ outcome }) => outcome)].map(([outcome, files]) => {
    const names = files.map(({ file }) => file);
    const where = `of an apply that was killed, in ${printable(secrets.folder, 200)}`;
    return `${outcome}: ${formatList(firstOf(names, MAX_SHOWN))}, ${where}: ${REASONS[outcome]}.`;
  });
}

/** Files with older secrets come last, so that newer ones win. */
function leftoversIn({ folder, location }: SecretFolder): string[] {
  const own = tagOf(location);
  const files = list(folder).flatMap((name) => {
    const { store, place, pid, previous } = HIDDEN.exec(name)?.groups ?? {};
    if (store !== own || isAtWork(join(folder, name), { place, pid: Number(pid) })) return [];
    return [{ name, isPrevious: previous !== undefined }];
  });
  return files.toSorted((one, other) => Number(one.isPrevious) - Number(other.isPrevious)).map(({ name }) => name);
}

async function tidy(path: string, { folder, nameOf }: SecretFolder): Promise<Outcome> {
  const secret = secretIn(path);
  if (secret === undefined) return 'Left alone';
  const name = await nameOf(secret);
  const target = name === undefined ? undefined : join(folder, name);
  const isFree = target !== undefined && !lstatSync(target, { throwIfNoEntry: false });
  const there = target === undefined || isFree ? undefined : secretIn(target);
  if (target === undefined || there === secret) {
    rmSync(path);
    return 'Removed';
  }
  if (!isFree && (there === undefined || (await nameOf(there)) !== undefined)) return 'Left alone';
  renameSync(path, target);
  return 'Recovered';
}

/** Explains a failure: another apply may be tidying, or the file may belong to another user. */
function classifyFailure(error: unknown): Outcome | undefined {
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (syscall === undefined) throw error;
  return code === 'ENOENT' ? undefined : 'Left alone';
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return []; // Writing there will say what is wrong with it.
  }
}

/** Reads the secret in a file: empty if not written yet, undefined for anything else, including links. */
function secretIn(path: string): string | undefined {
  lstatSync(path); // One that is gone was tidied by another apply: see `outcomeOfFailure`.
  const text = readPlainFile(path, MAX_BYTES)?.toString().trim();
  return text === '' || (text !== undefined && readSecret(text)) ? text : undefined;
}

/** Checks whether the apply that wrote a file may still be running. On another machine, this is unknown for a while. */
function isAtWork(path: string, { place, pid }: { place: string | undefined; pid: number }): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (!stat || Date.now() - stat.mtimeMs > MAX_AGE_MS) return false;
  return place !== PLACE || isRunning(pid);
}

/**
 * Checks whether a process runs here. A file with our own number belongs to an earlier process, since we have not
 * written any yet.
 */
function isRunning(pid: number): boolean {
  if (pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Identifies where process numbers are comparable: this machine since it started, in this container. */
const PLACE = tagOf(placeOfProcesses());

function placeOfProcesses(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8') + readlinkSync('/proc/self/ns/pid');
  } catch {
    return hostname();
  }
}

function tagOf(text: string): string {
  return hash('sha256', text).slice(0, 8);
}

/** The contents of a regular file of limited size; undefined for anything else, including links and pipes. */
function readPlainFile(path: Buffer | string, maxBytes: number): Buffer | undefined {
  let descriptor: number;
  try {
    // Without O_NONBLOCK, opening a pipe would wait.
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    return undefined;
  }
  try {
    const stat = fstatSync(descriptor);
    return stat.isFile() && stat.size <= maxBytes ? readFileSync(descriptor) : undefined;
  } finally {
    closeSync(descriptor);
  }
}
