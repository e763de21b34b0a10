/** The types of records that an authorizer meets (FastCGI 1.0, section 8). */
export const RECORD = { BEGIN_REQUEST: 1, END_REQUEST: 3, PARAMS: 4, STDOUT: 6 } as const;

/** One record. */
export interface FastCgiRecord {
  readonly type: number;
  readonly requestId: number;
  readonly content: Buffer;
}

const VERSION = 1;
const HEAD_BYTES = 8;
/** The most that a record's length can say. */
const MAX_CONTENT_BYTES = 0xffff;

/** Takes the records out of what a connection receives. */
export class RecordReader {
  #rest: Buffer = Buffer.alloc(0);

  /** The records that are complete now. @throws RangeError if something else than a record has come */
  *read(chunk: Buffer): Generator<FastCgiRecord> {
    this.#rest = this.#rest.length > 0 ? Buffer.concat([this.#rest, chunk]) : chunk;
    for (;;) {
      if (this.#rest.length > 0 && this.#rest[0] !== VERSION) throw new RangeError('This is not FastCGI 1.0.');
      if (this.#rest.length < HEAD_BYTES) return;
      const end = HEAD_BYTES + this.#rest.readUInt16BE(4);
      const next = end + this.#rest[6]!;
      if (this.#rest.length < next) return;
      const record = this.#rest.subarray(0, end);
      this.#rest = this.#rest.subarray(next);
      yield { type: record[1]!, requestId: record.readUInt16BE(2), content: record.subarray(HEAD_BYTES) };
    }
  }
}

/** A stream's content as records, with the empty one that ends it. */
export function streamRecords(type: number, requestId: number, content: Buffer): Buffer {
  const records: Buffer[] = [];
  for (let start = 0; start < content.length; start += MAX_CONTENT_BYTES)
    records.push(record(type, requestId, content.subarray(start, start + MAX_CONTENT_BYTES)));
  return Buffer.concat([...records, record(type, requestId, Buffer.alloc(0))]);
}

/** A record, of at most 65,535 bytes of content. */
export function record(type: number, requestId: number, content: Buffer): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt8(VERSION, 0);
  head.writeUInt8(type, 1);
  head.writeUInt16BE(requestId, 2);
  head.writeUInt16BE(content.length, 4);
  return Buffer.concat([head, content]);
}
