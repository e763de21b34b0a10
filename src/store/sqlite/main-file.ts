import { closeSync, openSync, readSync } from 'node:fs';
import { type LastChange, lastChangeIn } from './last-change.ts';
import { type FileIdentity, identifyStoreFile } from './sqlite-file.ts';

/** Descriptors by device and inode, each with how many use it. */
const descriptors = new Map<string, { file: number; users: number }>();

/**
 * The store's file itself, without what SQLite keeps beside it. All connections of a process share a descriptor:
 * closing one would release the locks that SQLite holds for the others (POSIX.1, fcntl).
 */
export class MainFile {
  readonly identity: FileIdentity;
  readonly #file: number;

  /** @throws KeysError STORE_UNAVAILABLE; an error of the file system */
  constructor(path: string) {
    this.identity = identifyStoreFile(path);
    const shared = descriptors.get(this.#key) ?? { file: openSync(path, 'r'), users: 0 };
    shared.users += 1;
    descriptors.set(this.#key, shared);
    this.#file = shared.file;
  }

  /** The last change that a page of the file has. */
  lastChange(page: number, pageBytes: number): LastChange | undefined {
    const bytes = Buffer.alloc(pageBytes);
    const read = readSync(this.#file, bytes, 0, pageBytes, (page - 1) * pageBytes);
    return read === pageBytes ? lastChangeIn(bytes) : undefined;
  }

  /** Ends its use, after SQLite has closed the file. */
  close(): void {
    const shared = descriptors.get(this.#key)!;
    shared.users -= 1;
    if (shared.users > 0) return;
    descriptors.delete(this.#key);
    closeSync(shared.file);
  }

  get #key(): string {
    return `${this.identity.dev}:${this.identity.ino}`;
  }
}
