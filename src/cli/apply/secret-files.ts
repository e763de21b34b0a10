import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { NewSecret } from '../../keys/apply/apply.ts';
import type { DeclarationIssue, DeclaredKey } from '../../keys/apply/declaration.ts';
import { KeysError } from '../../keys/errors.ts';
import { printable } from '../../keys/text.ts';

/** The longest file name that common file systems take, in bytes. */
const MAX_NAME_BYTES = 255;

/** Names that are too long for a file. */
export function validateFileNames(keys: readonly DeclaredKey[]): DeclarationIssue[] {
  return keys.flatMap(({ name }, index) => {
    const length = Buffer.byteLength(name);
    if (length <= MAX_NAME_BYTES) return [];
    const message = `The name takes ${length} bytes; for a file in --secrets-dir at most ${MAX_NAME_BYTES} are allowed.`;
    return [{ path: ['keys', index, 'name'], message }];
  });
}

/** Secrets in a folder, each in a file that has the name of its key. */
export class SecretFiles {
  readonly #folder: string;
  #made: string[] = [];

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** The path of a key's file. */
  pathOf(name: string): string {
    return join(this.#folder, name);
  }

  /**
   * Writes secrets, for their owner alone, in place of files of the same names. They are on the disk before the first one
   * gets its name. Where it fails, what was written is to be removed.
   * @throws KeysError OUTPUT_FAILED
   */
  write(secrets: readonly NewSecret[]): void {
    try {
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
      // First all are written, then all are flushed: the disk does that nearly at once.
      const written = secrets.map(({ secret, key }) => ({ name: key.name, path: this.#writeAside(secret) }));
      for (const { path } of written) flush(path);
      for (const { name, path } of written) this.#rename(path, this.pathOf(name));
      flush(this.#folder);
    } catch (error) {
      const { code = 'UNKNOWN' } = error as NodeJS.ErrnoException;
      throw new KeysError(
        'OUTPUT_FAILED',
        `The secrets could not be written to ${printable(this.#folder, 200)} (${code}). Nothing was changed.`,
        {
          cause: error,
        },
      );
    }
  }

  /** Removes what was written, where it opens nothing. */
  remove(): void {
    for (const path of this.#made) rmSync(path, { force: true });
    this.#made = [];
  }

  #writeAside(secret: string): string {
    const path = join(this.#folder, `.svc-api-${randomBytes(8).toString('hex')}`);
    this.#made.push(path);
    writeFileSync(path, `${secret}\n`, { flag: 'wx', mode: 0o600 });
    return path;
  }

  #rename(from: string, to: string): void {
    renameSync(from, to);
    this.#made.push(to);
  }
}

/** Brings the content of a file, or the names in a folder, to the disk. */
function flush(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
