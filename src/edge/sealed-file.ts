import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';

/** What a file begins with, before its salt: another form has another name. */
const FORM = Buffer.from('svc-api edge copy 1\n');
const [SALT_BYTES, LENGTH_BYTES, TAG_BYTES, NONCE_BYTES, NUMBER_BYTES] = [32, 4, 16, 12, 6];
/** How much is read at once, at least. */
const READ_BYTES = 1 << 20;
const CIPHER = 'aes-256-gcm';
/** Fast rather than small. */
const ZSTD = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };

/**
 * A file of texts that only a token opens. Behind its form and a salt is each text, compressed and encrypted
 * (AES-256-GCM), behind its length. Its key is derived from token and salt (HKDF-SHA256, RFC 5869) for this file alone,
 * and the nonce is the number of the text: what is altered, moved, left out, or of another file, does not open. Only
 * the end may be missing: whoever writes says in its texts where they are complete.
 */
export class SealedFile {
  readonly #file: FileHandle;
  readonly #key: Buffer;
  #count = 0;
  #length: number;
  #written: Promise<void>;

  private constructor(file: FileHandle, token: string) {
    const salt = randomBytes(SALT_BYTES);
    this.#file = file;
    this.#key = keyOf(token, salt);
    this.#length = FORM.length + SALT_BYTES;
    this.#written = file.appendFile(Buffer.concat([FORM, salt]));
  }

  /** Makes a file that only its owner may open, where there is none. @throws what the file system throws */
  static async create(path: string, token: string): Promise<SealedFile> {
    return new SealedFile(await open(path, 'wx', 0o600), token);
  }

  /** How many bytes it has, once all is written. */
  get length(): number {
    return this.#length;
  }

  /** Adds a text behind all others. After a failure, nothing can be added. @throws what the file system throws */
  append(text: Buffer): Promise<void> {
    const cipher = createCipheriv(CIPHER, this.#key, nonceOf(this.#count));
    const sealed = [cipher.update(zstdCompressSync(text, ZSTD)), cipher.final(), cipher.getAuthTag()];
    const length = Buffer.alloc(LENGTH_BYTES);
    length.writeUInt32LE(sealed.reduce((sum, part) => sum + part.length, 0));
    const bytes = Buffer.concat([length, ...sealed]);
    this.#count += 1;
    this.#length += bytes.length;
    this.#written = this.#written.then(() => this.#file.appendFile(bytes));
    return this.#written;
  }

  /** Resolves once all is on the disk. @throws what the file system throws */
  async sync(): Promise<void> {
    await this.#written;
    await this.#file.sync();
  }

  async close(): Promise<void> {
    await this.#written.catch(() => {});
    await this.#file.close().catch(() => {});
  }
}

/**
 * The texts of such a file, as far as they are there.
 * @throws Error if it is none, or a text does not open; what the file system throws
 */
export async function* readSealedFile(path: string, token: string): AsyncGenerator<Buffer> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    let [ahead, position] = [Buffer.alloc(0), 0];
    /** So many bytes more; undefined if they are not there. */
    const next = async (length: number) => {
      if (length > ahead.length + size - position) return undefined;
      if (length > ahead.length) {
        const { buffer, bytesRead } = await file.read(Buffer.alloc(Math.max(length, READ_BYTES)), { position });
        position += bytesRead;
        ahead = Buffer.concat([ahead, buffer.subarray(0, bytesRead)]);
      }
      const found = ahead.subarray(0, length);
      ahead = ahead.subarray(length);
      return found.length === length ? found : undefined;
    };
    const head = await next(FORM.length + SALT_BYTES);
    if (!head?.subarray(0, FORM.length).equals(FORM)) throw new Error('it is of another version, or no copy at all');
    const key = keyOf(token, head.subarray(FORM.length));
    for (let number = 0; ; number += 1) {
      const length = (await next(LENGTH_BYTES))?.readUInt32LE();
      const sealed = length === undefined ? undefined : await next(length);
      if (!sealed) return;
      yield opened(sealed, key, number);
    }
  } finally {
    await file.close();
  }
}

function opened(sealed: Buffer, key: Buffer, number: number): Buffer {
  try {
    const decipher = createDecipheriv(CIPHER, key, nonceOf(number), { authTagLength: TAG_BYTES });
    decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
    return zstdDecompressSync(Buffer.concat([decipher.update(sealed.subarray(0, -TAG_BYTES)), decipher.final()]));
  } catch {
    throw new Error('it is damaged, or was made with another token');
  }
}

function keyOf(token: string, salt: Buffer): Buffer {
  return Buffer.from(hkdfSync('sha256', token, salt, FORM, 32));
}

function nonceOf(number: number): Buffer {
  const nonce = Buffer.alloc(NONCE_BYTES);
  nonce.writeUIntBE(number, NONCE_BYTES - NUMBER_BYTES, NUMBER_BYTES);
  return nonce;
}
