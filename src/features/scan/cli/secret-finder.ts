import { Buffer } from 'node:buffer';
import { MAX_PREFIX_LENGTH, readSecret, SECRET_REST_LENGTH } from '../../../keys/secret/index.ts';

/** A secret and its position. */
export interface FoundSecret {
  secret: string;
  publicId: string;
  /** Counts from 1. */
  line: number;
  /** Counts from 1, in UTF-8 characters. */
  column: number;
}

const LINE_FEED = 0x0a;
const UNDERSCORE = 0x5f;
/** The distance between the two underscores of a secret. */
const BETWEEN = 13;
const MIN_PREFIX_LENGTH = 2;

/**
 * Finds secrets in a stream of bytes, by form and checksum, in bounded memory. The characters next to a secret do not
 * matter, so it is found even behind an escaped line break or a `%3D`; the checksum rules out chance matches.
 */
export class SecretFinder {
  #line = 1;
  #column = 1;
  /** The unscanned tail of the input, in which a secret can begin. */
  #rest = Buffer.alloc(0);

  /** Finds the secrets that end in the next bytes. The buffer can be reused once the generator is exhausted. */
  *find(next: Buffer): Generator<FoundSecret> {
    const bytes = this.#rest.length > 0 ? Buffer.concat([this.#rest, next]) : next;
    let counted = 0;
    let seen = 0;
    for (let at = bytes.indexOf(UNDERSCORE); at >= 0; at = bytes.indexOf(UNDERSCORE, at + 1)) {
      if (bytes[at + BETWEEN] !== UNDERSCORE || at < seen) continue;
      for (let start = at - MIN_PREFIX_LENGTH; start >= Math.max(0, at - MAX_PREFIX_LENGTH); start -= 1) {
        const secret = bytes.toString('latin1', start, at + SECRET_REST_LENGTH);
        const read = readSecret(secret);
        if (!read) continue;
        this.#advance(bytes, counted, start);
        counted = start;
        seen = at + SECRET_REST_LENGTH;
        yield { secret, publicId: read.publicId, line: this.#line, column: this.#column };
        break;
      }
    }
    const end = Math.max(seen, counted, bytes.length - MAX_PREFIX_LENGTH - SECRET_REST_LENGTH + 1);
    this.#advance(bytes, counted, end);
    this.#rest = Buffer.from(bytes.subarray(end));
  }

  /** Moves the current line and column over these bytes. */
  #advance(bytes: Buffer, from: number, to: number): void {
    let [line, column] = [this.#line, this.#column];
    for (let index = from; index < to; index += 1) {
      const byte = bytes[index]!;
      if (byte === LINE_FEED) {
        line += 1;
        column = 1;
      } else if ((byte & 0xc0) !== 0x80) column += 1; // Continuation bytes do not count.
    }
    [this.#line, this.#column] = [line, column];
  }
}
