import { fsyncSync, fstatSync, readFileSync, statSync, writeSync } from 'node:fs';
import { CliError } from './errors.ts';

/** Where a command reads and writes. */
export interface Terminal {
  /** Whether the user can be asked: stdin and stderr are both terminals. */
  readonly canPrompt: boolean;
  /** Whether stdin is a terminal, so that reading it waits for the user. */
  readonly isInputTerminal: boolean;
  /** Whether stdout is a terminal, where tables are aligned. */
  readonly isTerminal: boolean;
  /** Writes to stdout, and returns when all is written. @throws CliError OUTPUT_FAILED */
  out(text: string): void;
  /** Like `out`, for what must not get lost, such as a secret: also fails if stdout was closed from the start. */
  deliver(text: string): void;
  /** Writes a line to stderr; a failure is ignored. */
  note(text: string): void;
}

/** Shows warnings to the user, each in a line on stderr. */
export function warn(terminal: Pick<Terminal, 'note'>, warnings: readonly string[]): void {
  for (const warning of warnings) terminal.note(`Warning: ${warning}`);
}

const STDOUT = 1;
const STDERR = 2;

/** The process's own streams. They are written by descriptor: a stream object would report a failure too late. */
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
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5); // The pipe is full: its reader needs a moment.
    }
  }
}

/** Flushes a file to its device, which reveals a full one. Pipes and terminals have nothing to flush. */
function flush(descriptor: number): void {
  if (fstatSync(descriptor).isFile()) fsyncSync(descriptor);
}

/**
 * Whether a stream was closed when the process started. Node, like some parent processes, opens the null device in its
 * place, for reading and writing. A shell's `> /dev/null` is opened for writing only, and is intended.
 */
function isClosed(descriptor: number): boolean {
  try {
    if (fstatSync(descriptor).rdev !== statSync('/dev/null').rdev) return false;
    const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, 'utf8'))?.[1] ?? '0';
    return (Number.parseInt(flags, 8) & 3) === 2;
  } catch {
    return false; // Without /proc, there is no telling.
  }
}
