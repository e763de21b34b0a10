import type { Writable } from 'node:stream';

/**
 * Lets writes to a stream return at once also where it is a terminal, which Node opens to block: one that is held by
 * Ctrl-S, or whose window does not answer, would hold the whole process.
 */
export function neverBlock(stream: Writable): void {
  // Node has no documented way. Without this one, writes to a terminal block as before.
  (stream as { _handle?: { setBlocking?: (blocks: boolean) => void } })._handle?.setBlocking?.(false);
}

/** How much may wait for the reader, in bytes. */
const MAX_WAITING_BYTES = 1024 * 1024;

/** How long lines wait for others, in milliseconds. */
const GATHER_MS = 10;
/** How many lines are written at once, in bytes: a system call costs as much as to compose ten of them. */
const MAX_WRITE_BYTES = 32 * 1024;
/** The same where processes share a pipe: none of them writes into what another one writes (PIPE_BUF, see pipe(7)). */
const MAX_SHARED_WRITE_BYTES = 4096;

/**
 * Writes lines to a stream, and never waits for its reader. When too many lines wait, further ones are dropped and
 * counted, until those that wait have been read.
 */
export class LogOutput {
  readonly #stream: Writable;
  readonly #reportDropped: (lines: number) => void;
  readonly #maxWriteBytes: number;
  /** Lines in ASCII that wait for others. */
  #gathered = '';
  #lines = 0;
  #timer: NodeJS.Timeout | undefined;
  readonly #flush = (): void => this.flush();
  #dropped = 0;

  /**
   * @param isShared whether other processes write to it, too
   * @param reportDropped is called with the number of dropped lines once there is room again
   */
  constructor(stream: Writable, isShared: boolean, reportDropped: (lines: number) => void) {
    this.#stream = stream;
    this.#reportDropped = reportDropped;
    this.#maxWriteBytes = isShared ? MAX_SHARED_WRITE_BYTES : MAX_WRITE_BYTES;
    // Node would write all that waits at once, and other processes that share a pipe would write into it.
    (stream as { _writev?: unknown })._writev = undefined;
    // A closed stream must not end the program.
    if (stream.listenerCount('error') === 0) stream.on('error', () => {});
  }

  /** Writes a line, behind those that wait for others. */
  write(line: string): void {
    this.flush();
    this.#write(line, 1);
  }

  /**
   * Takes a line that may wait for others, but not for long: each write is a system call. It is written before a later
   * one, and before the process ends, unless that is killed.
   * @param line in ASCII alone
   */
  gather(line: string): void {
    if (this.#gathered.length + line.length > this.#maxWriteBytes) this.flush();
    if (this.#lines === 0) {
      this.#timer = setTimeout(this.#flush, GATHER_MS);
      process.on('exit', this.#flush);
    }
    this.#gathered += line;
    this.#lines += 1;
  }

  /** Writes the lines that wait for others. */
  flush(): void {
    if (this.#lines === 0) return;
    clearTimeout(this.#timer);
    process.off('exit', this.#flush);
    const [text, lines] = [this.#gathered, this.#lines];
    [this.#gathered, this.#lines] = ['', 0];
    // Node takes twice as long for a text that was put together.
    this.#write(Buffer.from(text, 'latin1'), lines);
  }

  #write(text: string | Uint8Array, lines: number): void {
    // Each time: a child process that inherits a terminal lets it block again.
    neverBlock(this.#stream);
    if (this.#dropped === 0 && this.#stream.writableLength < MAX_WAITING_BYTES) return void this.#stream.write(text);
    if (this.#dropped === 0) this.#stream.once('drain', () => this.#resume());
    this.#dropped += lines;
  }

  /** Waits until all lines have been read, but no longer than this; tells whether they have. */
  async drained(withinMs: number): Promise<boolean> {
    this.flush();
    if (this.#stream.writableLength === 0) return true;
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), withinMs);
      // Written after all others.
      this.#stream.write('', () => {
        clearTimeout(timer);
        resolve(true);
      });
    });
  }

  #resume(): void {
    const dropped = this.#dropped;
    this.#dropped = 0;
    this.#reportDropped(dropped);
  }
}
