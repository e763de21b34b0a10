import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  openSync,
  realpathSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { isKeysError } from '../../keys/errors.ts';
import { sqliteError } from './sqlite-errors.ts';

/** Enough for some hundred deletions, with their entries of the audit log. */
const RESERVE_BYTES = 1 << 20;
const CHUNK_BYTES = 1 << 16;

/** A file beside the store that takes up room, and is given up where the disk is full and a key must be revoked. */
export class Reserve {
  readonly #path: string;
  /** How much work is under way in its room. */
  #given = 0;

  /** @param path that of the store */
  constructor(path: string) {
    this.#path = path;
  }

  /** Takes up what room there is, up to the size of the reserve. Without the right to write, there is none. */
  keep(): void {
    if (this.#given > 0) return;
    try {
      const store = realpathSync(this.#path);
      const path = `${store}-reserve`;
      if (statSync(path, { throwIfNoEntry: false })?.size === RESERVE_BYTES) return;
      const { O_CREAT, O_APPEND, O_WRONLY, O_NOFOLLOW } = constants;
      const file = openSync(path, O_CREAT | O_APPEND | O_WRONLY | O_NOFOLLOW, 0o600);
      try {
        fchmodSync(file, 0o600); // Whatever the umask.
        const { uid, gid } = statSync(store);
        if (process.geteuid?.() === 0) fchownSync(file, uid, gid);
        // A file system that compresses would make nothing of zeros.
        for (let { size } = fstatSync(file); size < RESERVE_BYTES;)
          size += writeSync(file, randomBytes(Math.min(CHUNK_BYTES, RESERVE_BYTES - size)));
      } finally {
        closeSync(file);
      }
    } catch {
      // The rest is taken up when there is room.
    }
  }

  /** Runs work, and again without the reserve where the disk is full. @throws what `work` throws */
  async use<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      if (!isFull(error, this.#path)) throw error;
    }
    this.#given += 1;
    try {
      rmSync(`${realpathSync(this.#path)}-reserve`, { force: true });
      return await work();
    } finally {
      this.#given -= 1;
      this.keep();
    }
  }
}

function isFull(error: unknown, path: string): boolean {
  const known = sqliteError(error, path);
  return isKeysError(known) && known.code === 'STORE_FULL';
}
