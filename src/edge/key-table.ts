import { FEED_COLUMNS, type KeyRow } from '../store/index.ts';
import { Records } from './records.ts';
import { TextHash, UnitIndex } from './unit-index.ts';

/**
 * The keys of a store in memory, by their ids and by the digests of their secrets. Each is two or three pairs of an
 * index, and its row as the feed has it, which is parsed when somebody asks for it.
 */
export class KeyTable {
  readonly #records = new Records();
  readonly #byId = new UnitIndex();
  readonly #byDigest = new UnitIndex();
  readonly #asked = new TextHash();
  readonly #hashes = new RowHashes();
  readonly #hashesBefore = new RowHashes();
  #size = 0;

  /** How many keys there are. */
  get size(): number {
    return this.#size;
  }

  /** How many bytes of memory they take. */
  get memoryBytes(): number {
    return this.#byId.memoryBytes + this.#byDigest.memoryBytes + this.#records.memoryBytes;
  }

  /**
   * Adds a key, or puts it in the place of the one with its id.
   * @param bytes a JSON array in the order of `FEED_COLUMNS`
   * @throws SyntaxError for anything else; RangeError if there is no more room
   */
  put(bytes: Buffer): void {
    const { id, digest, previous } = this.#hashes.of(bytes);
    if (this.#size > 0) {
      const isSame = (row: KeyRow) => row.id === rowIn(bytes).id;
      this.#removeIf(id, isSame);
    }
    const unit = this.#records.add(bytes);
    this.#byId.add(id, unit);
    this.#byDigest.add(digest, unit);
    if (previous) this.#byDigest.add(previous, unit);
    this.#size += 1;
  }

  /** Removes the key with an id, if there is one. */
  remove(id: string): void {
    this.#removeIf(this.#asked.of(id), (row) => row.id === id);
  }

  /** The row of the key with an id. */
  findById(id: string): KeyRow | undefined {
    return this.#byId.find(this.#asked.of(id), (unit) => {
      const row = rowIn(this.#records.read(unit));
      return row.id === id ? row : undefined;
    });
  }

  /** The row of the key that has a secret with this digest: its present one, or the one before. */
  findByDigest(digest: string): KeyRow | undefined {
    return this.#byDigest.find(this.#asked.of(digest), (unit) => {
      const row = rowIn(this.#records.read(unit));
      return row.digest === digest || row.previous_digest === digest ? row : undefined;
    });
  }

  #removeIf(hash: TextHash, isIt: (row: KeyRow) => boolean): void {
    const found = this.#byId.find(hash, (unit) => {
      const bytes = this.#records.read(unit);
      return isIt(rowIn(bytes)) ? { unit, bytes } : undefined;
    });
    if (!found) return;
    const { unit, bytes } = found;
    const { id, digest, previous } = this.#hashesBefore.of(bytes);
    this.#byId.remove(id, unit);
    this.#byDigest.remove(digest, unit);
    if (previous) this.#byDigest.remove(previous, unit);
    this.#records.remove(unit);
    this.#size -= 1;
  }
}

const [BRACKET, CLOSING_BRACKET, SPACE, QUOTE, COMMA, NULL] = [0x5b, 0x5d, 0x20, 0x22, 0x2c, 0x6e];

/** The hashes of the texts by which a key is found: they stand first in its row, and are taken of its bytes. */
class RowHashes {
  readonly id = new TextHash();
  readonly digest = new TextHash();
  previous: TextHash | undefined;
  readonly #ofPrevious = new TextHash();

  /** @throws SyntaxError for what is not the row of a key */
  of(bytes: Buffer): this {
    if (!this.#ofBytes(bytes)) this.#ofRow(rowIn(bytes));
    return this;
  }

  /** @returns whether they could be taken without a parser */
  #ofBytes(bytes: Buffer): boolean {
    if (bytes[0] !== BRACKET || bytes[1] !== QUOTE || bytes.at(-1) !== CLOSING_BRACKET) return false;
    let at = behindComma(bytes, this.id.ofBytes(bytes, 2));
    if (bytes[at] !== QUOTE) return false;
    at = behindComma(bytes, this.digest.ofBytes(bytes, at + 1));
    this.previous = undefined;
    if (bytes[at] === NULL) return true;
    if (bytes[at] !== QUOTE) return false;
    this.previous = this.#ofPrevious;
    return this.previous.ofBytes(bytes, at + 1) !== -1;
  }

  #ofRow({ id, digest, previous_digest: previous }: KeyRow): void {
    this.id.of(id);
    this.digest.of(digest);
    this.previous = previous === null ? undefined : this.#ofPrevious.of(previous);
  }
}

/** The place behind a comma, and a space; -1 if there is no comma. */
function behindComma(bytes: Buffer, at: number): number {
  if (bytes[at] !== COMMA) return -1;
  return bytes[at + 1] === SPACE ? at + 2 : at + 1;
}

/** The row of a key in the feed. @throws SyntaxError */
function rowIn(bytes: Buffer): KeyRow {
  const values: unknown = JSON.parse(bytes.toString());
  if (!Array.isArray(values) || values.length !== FEED_COLUMNS.length)
    throw new SyntaxError('A line of the feed is not the row of a key.');
  const row = Object.fromEntries(FEED_COLUMNS.map((column, index) => [column, values[index]])) as unknown as KeyRow;
  // Where a bit of a file is flipped, a text may be read as a number.
  return { ...row, id: String(row.id), digest: String(row.digest) };
}
