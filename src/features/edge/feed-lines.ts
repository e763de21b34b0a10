import { yieldToEventLoop } from '../../keys/basics/index.ts';
import type { KeyTable } from './key-table.ts';

/** The last line: the cursor to continue from. */
export interface FeedEnd {
  readonly cursor: string;
  /** How long the keys are valid, in milliseconds; 0 if unknown. */
  readonly leaseMs: number;
}

const [LINE_FEED, PLUS, MINUS, EQUALS] = [0x0a, 0x2b, 0x2d, 0x3d];
/** More than any key needs. */
const MAX_LINE_BYTES = 2 ** 24;
/** Lines to take before checking the time, and the maximum time without a pause, in milliseconds. */
const LINES = 32;
const MAX_SLICE_MS = 4;

/**
 * Reads the lines of the feed into a table. Each is a sign and a JSON array: `+` with the row of a key, `-` with the id
 * of a deleted one, `=` with the cursor to continue from.
 */
export class FeedLines {
  /** The last line; undefined while the feed is incomplete. */
  end: FeedEnd | undefined;
  readonly #table: KeyTable;
  readonly #changed: ((id: string) => void) | undefined;
  #rest: Buffer = Buffer.alloc(0);

  /** @param changed called for each key */
  constructor(table: KeyTable, changed?: (id: string) => void) {
    this.#table = table;
    this.#changed = changed;
  }

  /**
   * Takes more lines, with pauses for other work.
   * @throws SyntaxError for an invalid line; what `KeyTable.put` throws
   */
  async take(piece: Buffer): Promise<void> {
    const bytes = this.#rest.length > 0 ? Buffer.concat([this.#rest, piece]) : piece;
    let [start, began] = [0, performance.now()];
    for (let lines = 1; ; lines += 1) {
      const end = bytes.indexOf(LINE_FEED, start);
      if (end === -1) break;
      this.#takeLine(bytes.subarray(start, end));
      start = end + 1;
      if (lines % LINES !== 0 || performance.now() - began < MAX_SLICE_MS) continue;
      await yieldToEventLoop();
      began = performance.now();
    }
    this.#rest = bytes.subarray(start);
    if (this.#rest.length > MAX_LINE_BYTES) throw new SyntaxError('A line of the feed is too long.');
  }

  /** @throws SyntaxError if something is missing */
  finish(): FeedEnd {
    if (!this.end || this.#rest.length > 0) throw new SyntaxError('The feed has broken off.');
    return this.end;
  }

  #takeLine(line: Buffer): void {
    if (this.end) throw new SyntaxError('The feed continues after its end.');
    const row = line.subarray(1);
    if (line[0] === PLUS) {
      const id = this.#table.put(row);
      this.#changed?.(id);
      return;
    }
    const [first, leaseMs] = JSON.parse(row.toString()) as unknown[];
    if (line[0] === MINUS && typeof first === 'string') {
      this.#table.remove(first);
      this.#changed?.(first);
    } else if (line[0] === EQUALS && typeof first === 'string' && isNumber(leaseMs))
      this.end = { cursor: first, leaseMs };
    else throw new SyntaxError('A line of the feed is of an unknown kind.');
  }
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number' && value >= 0;
}
