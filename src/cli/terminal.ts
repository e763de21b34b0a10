import { fstatSync, fsyncSync, readFileSync, statSync, writeSync } from 'node:fs';
import type { Writable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { neverBlock } from '../log.ts';
import { CliError, InterruptedError, ReaderGoneError } from './errors.ts';
import { waitUnlessSignalled } from './signals.ts';

/** True if a program has replaced the `write` of a stream of its process, such as a test that captures output. */
function isCaptured(stream: Writable): boolean {
  return stream.write !== (Object.getPrototypeOf(stream) as Writable).write;
}

/**
 * Writes to a captured stream, until the text is delivered. Not every replacement calls back, so this waits only as
 * long as the stream itself has something left to write.
 * @throws errors of the stream
 */
async function writeCaptured(stream: Writable, text: string): Promise<void> {
  let failure: Error | null | undefined;
  const written = new Promise<void>((resolve) => {
    stream.write(text, 'utf8', (error) => {
      failure = error;
      resolve();
    });
  });
  if (stream.writableLength > 0) await written;
  // A synchronous write reports its error in the next turn.
  else await setImmediate();
  if (failure) throw failure;
}

/** The input and output of a command. While it waits for a reader, a signal that this process handles ends the wait. */
export interface Terminal {
  /** True if the user can be asked: stdin and stderr are both terminals. */
  readonly canPrompt: boolean;
  /** True if stdin is a terminal, so that reading it waits for the user. */
  readonly isInputTerminal: boolean;
  /** True if stdout is a terminal, where tables are aligned. */
  readonly isTerminal: boolean;
  /** True if stdout can show more than ASCII: see `showsUnicode`. */
  readonly showsUnicode: boolean;
  /** True if the last line of stderr can be redrawn: it is a terminal, and not a dumb one. */
  readonly canRedraw: boolean;
  /** The number of columns of stderr, or COLUMNS; undefined if it is not a terminal. */
  readonly errorColumns: number | undefined;
  /** The number of columns of stdout: COLUMNS if it is a number, otherwise the terminal's, or 80. */
  readonly columns: number;
  /**
   * Writes to stdout, until everything is written.
   * @throws CliError OUTPUT_FAILED; ReaderGoneError; InterruptedError
   */
  out(text: string): Promise<void>;
  /** Like `out`, for a secret: also fails if stdout seems to be closed or discarded unintentionally. */
  deliver(text: string): Promise<void>;
  /** Writes lines to stderr, wrapped between words on a terminal. Failures are ignored. */
  note(text: string): Promise<void>;
  /**
   * Shows temporary text on stderr, if it can be written without waiting: as a last line that is redrawn and replaced
   * by other output, or as an ordinary line if redrawing is not possible. An empty text clears the line.
   */
  status(text: string): void;
  /** Stops waiting for readers: output that is not read at once is dropped. */
  stopWaiting(): void;
}

/** The same terminal for a command that is run for its result. @param keepsNotes true to show its notes */
export function withoutOutput(terminal: Terminal, keepsNotes: boolean): Terminal {
  const nothing = async () => {};
  return {
    canPrompt: false,
    isInputTerminal: terminal.isInputTerminal,
    isTerminal: false,
    showsUnicode: terminal.showsUnicode,
    canRedraw: false,
    errorColumns: terminal.errorColumns,
    columns: terminal.columns,
    out: nothing,
    deliver: nothing,
    note: keepsNotes ? (text) => terminal.note(text) : nothing,
    status: () => {},
    stopWaiting: () => terminal.stopWaiting(),
  };
}

/** Shows warnings to the user, each as a line on stderr. */
export async function warn(terminal: Pick<Terminal, 'note'>, warnings: readonly string[]): Promise<void> {
  for (const warning of warnings) await terminal.note(`Warning: ${warning}`);
}

type OutputStream = typeof process.stdout | typeof process.stderr;

/** The time for a reader to make room, before the next try. */
const RETRY_MS = 5;
/** The width of a terminal that does not report its own, in columns. */
export const DEFAULT_COLUMNS = 80;

/** Moves to the start of the line, and erases it to its end (ECMA-48, 8.3.41). */
const CLEAR_LINE = '\r\u001b[K';

/** The process's own streams. They are written by descriptor, since a stream object would report a failure too late. */
class ProcessTerminal implements Terminal {
  #waits = true;
  #hasStatus = false;

  get canPrompt(): boolean {
    return process.stdin.isTTY === true && process.stderr.isTTY === true;
  }

  get isInputTerminal(): boolean {
    return process.stdin.isTTY === true;
  }

  get isTerminal(): boolean {
    return process.stdout.isTTY === true;
  }

  get showsUnicode(): boolean {
    return showsUnicode(process.env);
  }

  get canRedraw(): boolean {
    return process.stderr.isTTY === true && process.env['TERM'] !== 'dumb';
  }

  get errorColumns(): number | undefined {
    return process.stderr.isTTY ? (wantedColumns(process.env) ?? (process.stderr.columns || undefined)) : undefined;
  }

  get columns(): number {
    return wantedColumns(process.env) ?? (process.stdout.columns || DEFAULT_COLUMNS);
  }

  async out(text: string): Promise<void> {
    this.status('');
    try {
      await this.#writeAll(process.stdout, this.isTerminal ? this.#overStatus(text) : text);
      flush(process.stdout.fd);
    } catch (error) {
      if (error instanceof CliError) throw error;
      throw outputFailed(error as NodeJS.ErrnoException);
    }
  }

  async deliver(text: string): Promise<void> {
    if (isClosed(process.stdout.fd)) throw outputFailed({ code: 'closed' });
    await this.out(text);
  }

  async note(text: string): Promise<void> {
    try {
      await this.#writeAll(process.stderr, `${this.#overStatus(await inColumns(text, this.errorColumns))}\n`);
    } catch {
      // Without stderr, the user cannot be told anything.
    }
  }

  status(text: string): void {
    if (!this.canRedraw) return text === '' ? undefined : void writeAtOnce(process.stderr, `${text}\n`);
    if (text === '' && !this.#hasStatus) return;
    const isWritten = writeAtOnce(process.stderr, CLEAR_LINE + text);
    this.#hasStatus = isWritten ? text !== '' : this.#hasStatus;
  }

  stopWaiting(): void {
    this.#waits = false;
  }

  /** Text that replaces the last line, even if that could not be cleared because the terminal was stopped. */
  #overStatus(text: string): string {
    const isDrawn = this.#hasStatus;
    this.#hasStatus = false;
    return isDrawn ? CLEAR_LINE + text : text;
  }

  async #writeAll(stream: OutputStream, text: string): Promise<void> {
    if (isCaptured(stream)) return writeCaptured(stream, text);
    neverBlock(stream);
    let rest: Uint8Array = Buffer.from(text);
    while (rest.length > 0) {
      try {
        rest = rest.subarray(writeSync(stream.fd, rest));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || !this.#waits) throw error;
        const signal = await waitUnlessSignalled(RETRY_MS);
        if (!signal) continue;
        this.stopWaiting();
        throw new InterruptedError(signal, 'Its output was not read.');
      }
    }
  }
}

/**
 * True if a terminal shows more than ASCII: its locale says so, by the first variable that is set (POSIX, chapter 8.2),
 * or none is set, as in a container. The console of Linux has a font of 256 or 512 characters.
 */
export function showsUnicode({ TERM, LC_ALL, LC_CTYPE, LANG }: NodeJS.ProcessEnv): boolean {
  const locale = LC_ALL || LC_CTYPE || LANG || 'UTF-8';
  return TERM !== 'dumb' && TERM !== 'linux' && /utf-?8/i.test(locale);
}

export const processTerminal: Terminal = new ProcessTerminal();

/** Text in lines that fit. The wrapping code is loaded only if one does not fit. */
async function inColumns(text: string, columns: number | undefined): Promise<string> {
  if (columns === undefined || text.split('\n').every(({ length }) => length <= columns)) return text;
  return (await import('./wrapped.ts')).wrappedLines(text, columns);
}

/** COLUMNS, if that is a number. */
function wantedColumns(env: NodeJS.ProcessEnv): number | undefined {
  const { COLUMNS: wanted = '' } = env;
  return /^[1-9]\d{0,3}$/.test(wanted) ? Number(wanted) : undefined;
}

/** Writes as much as possible without waiting. @returns true if anything was written */
function writeAtOnce(stream: OutputStream, text: string): boolean {
  if (isCaptured(stream)) {
    void writeCaptured(stream, text).catch(() => {});
    return true;
  }
  neverBlock(stream);
  try {
    return writeSync(stream.fd, text) > 0;
  } catch {
    return false;
  }
}

function outputFailed(cause: { code?: string | undefined }): CliError {
  if (cause.code === 'EPIPE') return new ReaderGoneError({ cause });
  const { code = 'unknown' } = cause;
  return new CliError('OUTPUT_FAILED', `The output could not be written to stdout (${code}).`, { cause });
}

/** Flushes a file to its device, which reveals a full disk. Pipes and terminals have nothing to flush. */
function flush(descriptor: number): void {
  if (fstatSync(descriptor).isFile()) fsyncSync(descriptor);
}

/**
 * True if a stream was closed when the process started. Node, like some parent processes, opens the null device in its
 * place, for reading and writing. A shell's `> /dev/null` is open for writing only, and is intended.
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
