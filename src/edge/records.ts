/** A record begins at a multiple of so many bytes, by which it is known: 31 bits name 128 GiB. */
const UNIT_BYTES = 64;
const MAX_UNITS = 2 ** 31;
/** Before a record is its length. */
const HEAD_BYTES = 4;
/** As long as the longest record. The system gives memory for the parts that are used. */
const PAGE_BYTES = 2 ** 24;
const PAGE_UNITS = PAGE_BYTES / UNIT_BYTES;

/** Records in pages outside the heap, so that many of them cost the garbage collector nothing. */
export class Records {
  readonly #pages: Buffer[] = [];
  /** The next unit: no record has 0. */
  #next = 1;
  /** Places that are free, by how many units they have. */
  readonly #free = new Map<number, number[]>();

  /** How many bytes of memory are taken, at least. */
  get memoryBytes(): number {
    const free = Array.from(this.#free.values(), ({ length }) => length * 8).reduce((sum, each) => sum + each, 0);
    return this.#next * UNIT_BYTES + free;
  }

  /**
   * Adds a record.
   * @returns the unit by which it is read; never 0
   * @throws RangeError if there is no more room
   */
  add(bytes: Buffer): number {
    const units = unitsOf(bytes.length);
    if (units > PAGE_UNITS) throw new RangeError(`A key has ${bytes.length} bytes.`);
    const unit = this.#free.get(units)?.pop() ?? this.#append(units);
    const [page, at] = this.#place(unit);
    page.writeUInt32LE(bytes.length, at);
    bytes.copy(page, at + HEAD_BYTES);
    return unit;
  }

  /** The record at a unit: a part of a buffer that is written to once it is removed. */
  read(unit: number): Buffer {
    const [page, at] = this.#place(unit);
    return page.subarray(at + HEAD_BYTES, at + HEAD_BYTES + page.readUInt32LE(at));
  }

  /** Removes a record: another one takes its place. */
  remove(unit: number): void {
    const units = unitsOf(this.read(unit).length);
    const free = this.#free.get(units);
    if (free) free.push(unit);
    else this.#free.set(units, [unit]);
  }

  /** Takes room behind all records, on a page that has as much. */
  #append(units: number): number {
    const left = PAGE_UNITS - (this.#next % PAGE_UNITS);
    const unit = left < units ? this.#next + left : this.#next;
    if (unit + units > MAX_UNITS) throw new RangeError('There are more keys than an edge can hold.');
    this.#pages[Math.floor(unit / PAGE_UNITS)] ??= Buffer.alloc(PAGE_BYTES);
    this.#next = unit + units;
    return unit;
  }

  #place(unit: number): readonly [Buffer, number] {
    return [this.#pages[Math.floor(unit / PAGE_UNITS)]!, (unit % PAGE_UNITS) * UNIT_BYTES];
  }
}

function unitsOf(length: number): number {
  return Math.ceil((HEAD_BYTES + length) / UNIT_BYTES);
}
