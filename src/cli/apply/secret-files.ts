import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { NewSecret } from '../../keys/apply/apply.ts';
import type { DeclarationIssue, DeclaredKey } from '../../keys/apply/declaration.ts';
import { KeysError } from '../../keys/errors.ts';
import { printable } from '../../keys/text.ts';

/** The longest file name that common file systems accept. */
const MAX_NAME_BYTES = 255;

/** Finds names that are too long for a file name. */
export function validateFileNames(keys: readonly DeclaredKey[]): DeclarationIssue[] {
  return keys.flatMap(({ name }, index) => {
    const length = Buffer.byteLength(name);
    if (length <= MAX_NAME_BYTES) return [];
    const message = `The name is ${length} bytes long; with --secrets-dir, at most ${MAX_NAME_BYTES} are allowed.`;
    return [{ path: ['keys', index, 'name'], message }];
  });
}

/** A folder of secrets, each in a file named after its key. */
export class SecretFiles {
  readonly #folder: string;
  #written: string[] = [];

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** The path of a key's file. */
  pathOf(name: string): string {
    return join(this.#folder, name);
  }

  /**
   * Writes secrets with mode 0600, replacing files of the same names. All are on disk before the first is renamed into
   * place. After a failure, the caller removes what was written.
   * @throws KeysError OUTPUT_FAILED
   */
  write(secrets: readonly NewSecret[]): void {
    try {
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
      // All are written before any is flushed: the disk then handles the flushes nearly at once.
      const written = secrets.map(({ secret, key }) => ({ name: key.name, path: this.#writeTemporary(secret) }));
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

  /** Removes the written files, once their secrets are worthless because the keys were not created. */
  remove(): void {
    for (const path of this.#written) rmSync(path, { force: true });
    this.#written = [];
  }

  #writeTemporary(secret: string): string {
    const path = join(this.#folder, `.svc-api-${randomBytes(8).toString('hex')}`);
    this.#written.push(path);
    writeFileSync(path, `${secret}\n`, { flag: 'wx', mode: 0o600 });
    return path;
  }

  #rename(from: string, to: string): void {
    renameSync(from, to);
    this.#written.push(to);
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
