import { FEED_COLUMNS, type KeyRow } from '../../store/index.ts';

/**
 * The keys of a store in memory, by id and by digests of secrets. A row is kept as received, and parsed when the key is
 * looked up.
 */
export class KeyTable {
  readonly #rows = new Map<string, string>();
  readonly #idByDigest = new Map<string, string>();
  #rowBytes = 0;

  /** Number of keys. */
  get size(): number {
    return this.#rows.size;
  }

  /** Size of their rows, about half of the memory that the table takes. */
  get rowBytes(): number {
    return this.#rowBytes;
  }

  /**
   * Adds a key, or replaces the one with its id.
   * @param bytes a JSON array in the order of `FEED_COLUMNS`
   * @returns its id
   * @throws SyntaxError for anything else
   */
  put(bytes: Buffer): string {
    const text = bytes.toString();
    const { id, digests } = namesIn(text);
    this.remove(id);
    this.#rows.set(id, text);
    this.#rowBytes += text.length;
    for (const digest of digests) this.#idByDigest.set(digest, id);
    return id;
  }

  /** Removes the key with an id, if there is one. */
  remove(id: string): void {
    const text = this.#rows.get(id);
    if (text === undefined) return;
    this.#rows.delete(id);
    this.#rowBytes -= text.length;
    // Another key can have got its digest since.
    for (const digest of namesIn(text).digests)
      if (this.#idByDigest.get(digest) === id) this.#idByDigest.delete(digest);
  }

  /** The row of the key with an id. */
  findById(id: string): KeyRow | undefined {
    const text = this.#rows.get(id);
    return text === undefined ? undefined : rowIn(text);
  }

  /** The row of the key with a current or previous secret of this digest. */
  findByDigest(digest: string): KeyRow | undefined {
    const id = this.#idByDigest.get(digest);
    return id === undefined ? undefined : this.findById(id);
  }
}

/** Reads the id and digests, the first fields in a row of the feed. @throws SyntaxError */
function namesIn(text: string): { id: string; digests: string[] } {
  const [id, digest, previous] = valuesIn(text) as [string, string, string | null];
  return { id, digests: previous === null ? [digest] : [digest, previous] };
}

function rowIn(text: string): KeyRow {
  const values = valuesIn(text);
  return Object.fromEntries(FEED_COLUMNS.map((column, index) => [column, values[index]])) as unknown as KeyRow;
}

/** @throws SyntaxError */
function valuesIn(text: string): unknown[] {
  const values: unknown = JSON.parse(text);
  if (Array.isArray(values) && values.length === FEED_COLUMNS.length) return values;
  throw new SyntaxError('A line of the feed is not the row of a key.');
}
