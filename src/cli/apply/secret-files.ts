import { randomBytes } from 'node:crypto';
import {
  closeSync,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { Applied } from '../../keys/administration.ts';
import type { DeclaredKey } from '../../keys/apply/declaration.ts';
import type { DocumentIssue } from '../../keys/document.ts';
import { KeysError } from '../../keys/errors.ts';
import { printable } from '../../keys/text.ts';
import { hiddenName } from './leftover-files.ts';

/** The longest file name that common file systems accept. */
const MAX_NAME_BYTES = 255;

/** Finds names that are too long for a file name. */
export function validateFileNames(keys: readonly DeclaredKey[]): DocumentIssue[] {
  return keys.flatMap(({ name }, index) => {
    const length = Buffer.byteLength(name);
    if (length <= MAX_NAME_BYTES) return [];
    const message = `The name is ${length} bytes long; with --secrets-dir, at most ${MAX_NAME_BYTES} are allowed.`;
    return [{ path: ['keys', index, 'name'], message }];
  });
}

interface SecretFile {
  /** Where the secret is until it is published. */
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

  /** The path of a key's file. */
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

  /** Removes what was written and not published for good: each older file is as before, even if another one fails. */
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

/** Whether there is a file or a link, even one that leads nowhere. */
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
