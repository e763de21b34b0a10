import { randomBytes } from 'node:crypto';

/** The seeds of the hashes: nobody outside can choose texts that share one. */
const SEEDS = new Int32Array(randomBytes(8).buffer.slice(0, 8));
const BACKSLASH = 0x5c;
const QUOTE = 0x22;

/** The hash of a text, in two numbers of 32 bits. There is one, which is written over: an object each costs more. */
export class TextHash {
  high = 0;
  low = 0;

  /** Takes the hash of a text. */
  of(text: string): this {
    let [one, other] = [SEEDS[0]!, SEEDS[1]!];
    for (let at = 0; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      one = Math.imul(one ^ code, 0x9e3779b1);
      other = Math.imul(other ^ code, 0x5f356495);
    }
    return this.#end(one, other);
  }

  /**
   * Takes the hash of a text in JSON, whose bytes begin behind a quote.
   * @returns the place behind the quote at its end; -1 where the bytes are not the text itself
   */
  ofBytes(bytes: Uint8Array, start: number): number {
    let [one, other] = [SEEDS[0]!, SEEDS[1]!];
    for (let at = start; at < bytes.length; at += 1) {
      const code = bytes[at]!;
      if (code === QUOTE) {
        this.#end(one, other);
        return at + 1;
      }
      if (code === BACKSLASH || code >= 0x80) return -1;
      one = Math.imul(one ^ code, 0x9e3779b1);
      other = Math.imul(other ^ code, 0x5f356495);
    }
    return -1;
  }

  #end(one: number, other: number): this {
    const mixed = Math.imul(one ^ (one >>> 16), 0x85ebca6b) ^ Math.imul(other ^ (other >>> 13), 0xc2b2ae35);
    this.high = mixed;
    this.low = Math.imul(other ^ (other >>> 16), 0x85ebca6b) ^ Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
    return this;
  }
}

/** Each part grows by itself, so that nobody waits until a large table has grown. */
const PARTS = 4096;
const FIRST_SLOTS = 8;
/** How full a part may be, and how much larger it then becomes. */
const MAX_LOAD = 0.8;
const GROWTH = 1.4;
const TWO_32 = 2 ** 32;

/**
 * Finds units, which are not 0, by hashes. A part is a list of pairs, of the low half of a hash and a unit, by linear
 * probing: a pair stands at the place that its hash says, or behind it. 8 bytes each, and the slots that are free.
 */
export class UnitIndex {
  readonly #parts: Int32Array[] = Array.from({ length: PARTS }, () => new Int32Array(2 * FIRST_SLOTS));
  readonly #counts = new Uint32Array(PARTS);
  #slots = PARTS * FIRST_SLOTS;

  /** How many bytes of memory are taken. */
  get memoryBytes(): number {
    return this.#slots * 8;
  }

  add({ high, low }: TextHash, unit: number): void {
    const number = high & (PARTS - 1);
    const count = (this.#counts[number]! += 1);
    let part = this.#parts[number]!;
    if (count > (part.length / 2) * MAX_LOAD) part = this.#grow(number);
    insert(part, low, unit);
  }

  /** What `read` makes of the first unit with a hash of which it makes anything. */
  find<Result>({ high, low }: TextHash, read: (unit: number) => Result | undefined): Result | undefined {
    const part = this.#parts[high & (PARTS - 1)]!;
    for (let at = placeOf(low, part); part[at + 1] !== 0; at = after(at, part)) {
      if (part[at] !== low) continue;
      const found = read(part[at + 1]!);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  remove({ high, low }: TextHash, unit: number): void {
    const part = this.#parts[high & (PARTS - 1)]!;
    let at = placeOf(low, part);
    while (part[at + 1] !== 0 && (part[at] !== low || part[at + 1] !== unit)) at = after(at, part);
    if (part[at + 1] === 0) return;
    this.#counts[high & (PARTS - 1)]! -= 1;
    // What stands behind its place because of this one moves up.
    for (let next = after(at, part); part[next + 1] !== 0; next = after(next, part)) {
      const place = placeOf(part[next]!, part);
      const isBetween = at <= next ? at < place && place <= next : at < place || place <= next;
      if (isBetween) continue;
      part[at] = part[next]!;
      part[at + 1] = part[next + 1]!;
      at = next;
    }
    part[at + 1] = 0;
  }

  #grow(number: number): Int32Array {
    const before = this.#parts[number]!;
    const slots = Math.ceil((before.length / 2) * GROWTH);
    const part = new Int32Array(2 * slots);
    this.#slots += slots - before.length / 2;
    for (let at = 0; at < before.length; at += 2) if (before[at + 1] !== 0) insert(part, before[at]!, before[at + 1]!);
    return (this.#parts[number] = part);
  }
}

function insert(part: Int32Array, low: number, unit: number): void {
  let at = placeOf(low, part);
  while (part[at + 1] !== 0) at = after(at, part);
  part[at] = low;
  part[at + 1] = unit;
}

function placeOf(low: number, part: Int32Array): number {
  return 2 * Math.floor(((low >>> 0) * (part.length >>> 1)) / TWO_32);
}

function after(at: number, part: Int32Array): number {
  return at + 2 === part.length ? 0 : at + 2;
}
