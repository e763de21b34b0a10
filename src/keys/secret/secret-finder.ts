import { Buffer } from 'node:buffer';
import { readSecret, SECRET_LENGTH, SECRET_START } from './secret.ts';

/** A secret, and where it begins. Lines and columns count from 1, columns in characters of UTF-8. */
export interface FoundSecret {
  secret: string;
  publicId: string;
  line: number;
  column: number;
}

const LINE_FEED = 0x0a;

/**
 * Finds secrets in bytes that come in parts, by form and checksum, in bounded memory. What stands beside a secret does not
 * matter, so that one behind an escaped line break or a `%3D` is found: the checksum keeps chance finds out.
 */
export class SecretFinder {
  #line = 1;
  #column = 1;
  /** The end of what was seen, where a secret may have begun. */
  #rest = Buffer.alloc(0);

  /** Finds the secrets that end in the next bytes. What is given may be changed when all were taken. */
  *find(next: Buffer): Generator<FoundSecret> {
    const bytes = this.#rest.length > 0 ? Buffer.concat([this.#rest, next]) : next;
    let passed = 0;
    let start = bytes.indexOf(SECRET_START, 0, 'latin1');
    while (start >= 0 && start + SECRET_LENGTH <= bytes.length) {
      const secret = bytes.toString('latin1', start, start + SECRET_LENGTH);
      const read = readSecret(secret);
      if (read) {
        this.#pass(bytes, passed, start);
        passed = start;
        yield { secret, publicId: read.publicId, line: this.#line, column: this.#column };
      }
      start = bytes.indexOf(SECRET_START, start + 1, 'latin1');
    }
    const end = Math.max(passed, bytes.length - SECRET_LENGTH + 1);
    this.#pass(bytes, passed, end);
    this.#rest = Buffer.from(bytes.subarray(end));
  }

  /** Counts lines and columns on. */
  #pass(bytes: Buffer, from: number, to: number): void {
    let [line, column] = [this.#line, this.#column];
    for (let index = from; index < to; index += 1) {
      const byte = bytes[index]!;
      if (byte === LINE_FEED) {
        line += 1;
        column = 1;
      } else if ((byte & 0xc0) !== 0x80) column += 1; // Not the second or a later byte of a character.
    }
    [this.#line, this.#column] = [line, column];
  }
}
