import { createCipheriv, createDecipheriv, createSecretKey, randomBytes } from 'node:crypto';
import { closeSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Where bytes are kept. */
interface Medium {
  /** Fills a buffer with what is at a position, and returns how much that is. */
  read(into: Buffer, position: number): number;
  write(bytes: Buffer, position: number): void;
  close(): void;
}

/** A file that no other process can open: it has no name any more. @throws what the file system throws */
function privateFile(folder: string): Medium {
  const path = join(folder, `svc-api-edge-${randomBytes(8).toString('hex')}`);
  const file = openSync(path, 'wx+', 0o600);
  unlinkSync(path);
  return {
    read(into, position) {
      let length = 0;
      for (;;) {
        const count = readSync(file, into, length, into.length - length, position + length);
        length += count;
        if (count === 0 || length === into.length) return length;
      }
    },
    write(bytes, position) {
      for (let done = 0; done < bytes.length;)
        done += writeSync(file, bytes, done, bytes.length - done, position + done);
    },
    close: () => closeSync(file),
  };
}

const PAGE_BYTES = 1 << 20;

/** Memory, where no file can be made. */
function memory(): Medium {
  const pages: Buffer[] = [];
  const eachPart = (bytes: Buffer, position: number, work: (page: Buffer, at: number, part: Buffer) => void) => {
    for (let done = 0; done < bytes.length;) {
      const at = (position + done) % PAGE_BYTES;
      const part = bytes.subarray(done, done + PAGE_BYTES - at);
      work((pages[Math.floor((position + done) / PAGE_BYTES)] ??= Buffer.alloc(PAGE_BYTES)), at, part);
      done += part.length;
    }
  };
  return {
    read(into, position) {
      eachPart(into, position, (page, at, part) => page.copy(part, 0, at));
      return into.length;
    },
    write: (bytes, position) => eachPart(bytes, position, (page, at, part) => part.copy(page, at)),
    close: () => void (pages.length = 0),
  };
}

/** A record begins at a multiple of so many bytes, by which it is known: 31 bits name 128 GiB. */
const UNIT_BYTES = 64;
const MAX_UNITS = 2 ** 31;
/** Before a record is the number of its version, of 5 bytes, and its length, of 3: both as they are. */
const VERSION_BYTES = 5;
const HEAD_BYTES = 8;
const MAX_RECORD_BYTES = 2 ** 24 - 1;
/** What is appended is kept in memory until there is so much. */
const TAIL_BYTES = 1 << 20;
/** Few records are longer. */
const READ_BYTES = 1024;
const BLOCK_BYTES = 16;

/**
 * Records that only this process can read: in a file without a name, encrypted by a key that is in memory alone
 * (AES-256-CTR). What is appended is encrypted by its place; what takes the place of another record, by its version as
 * well, so that no two texts are encrypted alike.
 */
export class RecordFile {
  /** Why there is no file, and all is kept in memory. */
  readonly problem: Error | undefined;
  readonly #medium: Medium;
  /** Not its bytes, which Node would copy each time. */
  readonly #key = createSecretKey(randomBytes(32));
  /** What was appended and is not written yet, as it is; and where that begins, in bytes. */
  #tail = Buffer.alloc(TAIL_BYTES);
  #tailAt = UNIT_BYTES;
  #tailLength = 0;
  #version = 0;
  /** Places that are free, by how many units they have. */
  readonly #free = new Map<number, number[]>();

  constructor(folder = tmpdir()) {
    try {
      this.#medium = privateFile(folder);
    } catch (error) {
      this.#medium = memory();
      this.problem = error as Error;
    }
  }

  /** How many bytes of memory are taken, at least. */
  get memoryBytes(): number {
    const free = Array.from(this.#free.values(), ({ length }) => length * 8).reduce((sum, each) => sum + each, 0);
    return this.#tail.length + free + (this.problem ? this.#tailAt : 0);
  }

  /**
   * Adds a record.
   * @returns the unit by which it is read; never 0
   * @throws RangeError if there is no more room; what the file system throws
   */
  add(bytes: Buffer): number {
    if (bytes.length > MAX_RECORD_BYTES) throw new RangeError(`A key has ${bytes.length} bytes.`);
    const units = unitsOf(bytes.length);
    const unit = this.#free.get(units)?.pop();
    if (unit === undefined) return this.#append(bytes, units * UNIT_BYTES);
    const record = Buffer.alloc(HEAD_BYTES + bytes.length);
    writeHead(record, 0, { version: (this.#version += 1), length: bytes.length });
    bytes.copy(record, HEAD_BYTES);
    const position = unit * UNIT_BYTES;
    if (position >= this.#tailAt) record.copy(this.#tail, position - this.#tailAt);
    else this.#write(record, position, this.#version);
    return unit;
  }

  /** The record at a unit. It may be a part of a buffer that is written to later. */
  read(unit: number): Buffer {
    const position = unit * UNIT_BYTES;
    if (position >= this.#tailAt) {
      const at = position - this.#tailAt;
      return this.#tail.subarray(at + HEAD_BYTES, at + HEAD_BYTES + lengthAt(this.#tail, at));
    }
    let bytes = Buffer.allocUnsafe(READ_BYTES);
    let count = this.#medium.read(bytes, position);
    const end = HEAD_BYTES + lengthAt(bytes, 0);
    if (end > bytes.length) count = this.#medium.read((bytes = Buffer.allocUnsafe(end)), position);
    if (count < end) throw new Error('A record is not whole.');
    const version = bytes.readUIntLE(0, VERSION_BYTES);
    const decipher = createDecipheriv('aes-256-ctr', this.#key, counterAt(position, version));
    return decipher.update(bytes.subarray(0, end)).subarray(HEAD_BYTES);
  }

  /** Removes a record of so many bytes: another one takes its place. */
  remove(unit: number, length: number): void {
    const units = unitsOf(length);
    const free = this.#free.get(units);
    if (free) free.push(unit);
    else this.#free.set(units, [unit]);
  }

  close(): void {
    this.#medium.close();
  }

  #append(bytes: Buffer, capacity: number): number {
    if (this.#tailLength + capacity > this.#tail.length) {
      this.#flush();
      if (capacity > this.#tail.length) this.#tail = Buffer.alloc(capacity);
    }
    const at = this.#tailLength;
    const unit = (this.#tailAt + at) / UNIT_BYTES;
    if (unit >= MAX_UNITS) throw new RangeError('There are more keys than an edge can hold.');
    writeHead(this.#tail, at, { version: 0, length: bytes.length });
    bytes.copy(this.#tail, at + HEAD_BYTES);
    this.#tailLength += capacity;
    return unit;
  }

  #flush(): void {
    const written = this.#tail.subarray(0, this.#tailLength);
    for (let at = 0; at < written.length; at += unitsOf(lengthAt(written, at)) * UNIT_BYTES)
      written.writeUIntLE(0, at, VERSION_BYTES);
    this.#write(written, this.#tailAt, 0);
    this.#tailAt += this.#tailLength;
    this.#tailLength = 0;
  }

  /** Writes records that follow each other. */
  #write(records: Buffer, position: number, version: number): void {
    const encrypted = createCipheriv('aes-256-ctr', this.#key, counterAt(position, version)).update(records);
    for (let at = 0; at < records.length; at += unitsOf(lengthAt(records, at)) * UNIT_BYTES)
      records.copy(encrypted, at, at, at + HEAD_BYTES);
    this.#medium.write(encrypted, position);
  }
}

function unitsOf(length: number): number {
  return Math.ceil((HEAD_BYTES + length) / UNIT_BYTES);
}

function writeHead(bytes: Buffer, at: number, { version, length }: { version: number; length: number }): void {
  bytes.writeUIntLE(version, at, VERSION_BYTES);
  bytes.writeUIntLE(length, at + VERSION_BYTES, HEAD_BYTES - VERSION_BYTES);
}

function lengthAt(bytes: Buffer, at: number): number {
  return bytes[at + 5]! | (bytes[at + 6]! << 8) | (bytes[at + 7]! << 16);
}

/** The counter of the block at a position: it never comes again with another text of the same version. */
function counterAt(position: number, version: number): Buffer {
  const counter = Buffer.alloc(BLOCK_BYTES);
  counter.writeUIntBE(version, 0, VERSION_BYTES);
  counter.writeUIntBE(position / BLOCK_BYTES, 10, 6);
  return counter;
}
