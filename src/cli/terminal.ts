import { fsyncSync, fstatSync, readFileSync, statSync, writeSync } from 'node:fs';
import { CliError } from './errors.ts';

/** Where a command reads and writes. */
export interface Terminal {
  /** Whether somebody can be asked: stdin and stderr are both terminals. */
  readonly canPrompt: boolean;
  /** Whether stdin is a terminal, so that nothing comes from it until somebody types. */
  readonly isInputTerminal: boolean;
  /** Whether stdout is a terminal, on which tables are shown. */
  readonly isTerminal: boolean;
  /** Writes to stdout and waits until it is out. @throws CliError OUTPUT_FAILED when that fails */
  out(text: string): void;
  /** The same for what somebody must get, such as a secret: a stdout that was closed before the start is a failure, too. */
  deliver(text: string): void;
  /** Writes a line to stderr; that nobody reads it is no failure. */
  note(text: string): void;
}

const STDOUT = 1;
const STDERR = 2;

/** The process's own streams. They are written to by descriptor: a stream object would report a failure too late. */
export const processTerminal: Terminal = {
  get canPrompt() {
    return process.stdin.isTTY === true && process.stderr.isTTY === true;
  },
  get isInputTerminal() {
    return process.stdin.isTTY === true;
  },
  get isTerminal() {
    return process.stdout.isTTY === true;
  },
  out(text) {
    try {
      writeAll(STDOUT, text);
      flush(STDOUT);
    } catch (error) {
      throw outputFailed((error as NodeJS.ErrnoException).code ?? 'unknown', error);
    }
  },
  deliver(text) {
    if (isClosed(STDOUT)) throw outputFailed('closed');
    this.out(text);
  },
  note(text) {
    try {
      writeAll(STDERR, `${text}\n`);
    } catch {
      // Without stderr there is nobody left to tell.
    }
  },
};

function outputFailed(reason: string, cause?: unknown): CliError {
  return new CliError('OUTPUT_FAILED', `The output could not be written to stdout (${reason}).`, { cause });
}

function writeAll(descriptor: number, text: string): void {
  let rest: Uint8Array = Buffer.from(text);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(descriptor, rest));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5); // A full pipe: its reader needs a moment.
    }
  }
}

/** Brings a file's new content to its device, where a full one is found out. Pipes and terminals have nothing to flush. */
function flush(descriptor: number): void {
  if (fstatSync(descriptor).isFile()) fsyncSync(descriptor);
}

/**
 * Whether a stream was closed before the start: Node opens the null device in its place, for reading and writing, as some
 * programs do for what they start. A `> /dev/null` in a shell is for writing only, and somebody's wish.
 */
function isClosed(descriptor: number): boolean {
  try {
    if (fstatSync(descriptor).rdev !== statSync('/dev/null').rdev) return false;
    const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, 'utf8'))?.[1] ?? '0';
    return (Number.parseInt(flags, 8) & 3) === 2;
  } catch {
    return false; // No /proc: it cannot be told.
  }
}
