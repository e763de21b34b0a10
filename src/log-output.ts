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

/**
 * Writes lines to a stream, and never waits for its reader. When too many lines wait, further ones are dropped and
 * counted, until those that wait have been read.
 */
export class LogOutput {
  readonly #stream: Writable;
  readonly #reportDropped: (lines: number) => void;
  #dropped = 0;

  /** @param reportDropped is called with the number of dropped lines once there is room again */
  constructor(stream: Writable, reportDropped: (lines: number) => void) {
    this.#stream = stream;
    this.#reportDropped = reportDropped;
    // A closed stream must not end the program.
    if (stream.listenerCount('error') === 0) stream.on('error', () => {});
  }

  write(line: string): void {
    // Each time: a child process that inherits a terminal lets it block again.
    neverBlock(this.#stream);
    if (this.#dropped === 0 && this.#stream.writableLength < MAX_WAITING_BYTES) return void this.#stream.write(line);
    if (this.#dropped === 0) this.#stream.once('drain', () => this.#resume());
    this.#dropped += 1;
  }

  /** Waits until all lines have been read, but no longer than this; tells whether they have. */
  async drained(withinMs: number): Promise<boolean> {
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
