import { fstatSync, fsyncSync, readFileSync, statSync, writeSync } from 'node:fs';
import type { Writable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { neverBlock } from '../log.ts';
import { CliError, InterruptedError, ReaderGoneError } from './errors.ts';
import { waitUnlessSignalled } from './signals.ts';

/** Whether a program has replaced the `write` of a stream of its process, as tests do to capture what is written. */
function isCaptured(stream: Writable): boolean {
  return stream.write !== (Object.getPrototypeOf(stream) as Writable).write;
}

/**
 * Writes to a stream that is captured, until the text is where it goes. Not every replacement calls back, so it is
 * waited for only as long as the stream itself has something left to write.
 * @throws what the stream reports
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
  // What was written at once is reported in the next turn.
  else await setImmediate();
  if (failure) throw failure;
}

/** Where a command reads and writes. Where it waits for a reader, a signal that this process handles ends the wait. */
export interface Terminal {
  /** Whether the user can be asked: stdin and stderr are both terminals. */
  readonly canPrompt: boolean;
  /** Whether stdin is a terminal, so that reading it waits for the user. */
  readonly isInputTerminal: boolean;
  /** Whether stdout is a terminal, where tables are aligned. */
  readonly isTerminal: boolean;
  /** Whether stdout shows more than ASCII: see `showsUnicode`. */
  readonly showsUnicode: boolean;
  /** Whether the last line of stderr can be drawn anew: it is a terminal, and no dumb one. */
  readonly canRedraw: boolean;
  /** How many columns stderr has, or COLUMNS says; undefined if it is not a terminal. */
  readonly errorColumns: number | undefined;
  /** How many columns stdout has: COLUMNS if that is a number, otherwise what the terminal says, or 80. */
  readonly columns: number;
  /** Writes to stdout, until all is written. @throws CliError OUTPUT_FAILED; ReaderGoneError; InterruptedError */
  out(text: string): Promise<void>;
  /** Like `out`, for a secret: also fails if stdout seems to be closed, or is discarded in a way that looks so. */
  deliver(text: string): Promise<void>;
  /** Writes lines to stderr, at a terminal wrapped between words; a failure is ignored. */
  note(text: string): Promise<void>;
  /**
   * Shows passing text on stderr, where there is room for it at once: as the last line, which is drawn anew and which
   * other output replaces, or where that can't be, as a line. An empty text clears the last line.
   */
  status(text: string): void;
  /** From now on nothing waits for a reader: what is not read at once is given up. */
  stopWaiting(): void;
}

/** The same terminal for a command whose result another one gets. @param keepsNotes whether its notes are shown */
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

/** Shows warnings to the user, each in a line on stderr. */
export async function warn(terminal: Pick<Terminal, 'note'>, warnings: readonly string[]): Promise<void> {
  for (const warning of warnings) await terminal.note(`Warning: ${warning}`);
}

type OutputStream = typeof process.stdout | typeof process.stderr;

/** How long a reader gets to make room, before the next try. */
const RETRY_MS = 5;
/** The width of a terminal that does not know its own, in columns. */
export const DEFAULT_COLUMNS = 80;

/** Goes to the start of the line, and erases from there to its end (ECMA-48, 8.3.41). */
const CLEAR_LINE = '\r\u001b[K';

/** The process's own streams. They are written by descriptor: a stream object would report a failure too late. */
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
      // Without stderr there is nobody left to tell.
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

  /** Text that replaces the last line, also where it could not be cleared, as the terminal was held. */
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
 * Whether a terminal shows more than ASCII: its locale says so, by the first variable that is set (POSIX, chapter 8.2),
 * or there is none, as in a container. The console of Linux has a font of 256 or 512 characters.
 */
export function showsUnicode({ TERM, LC_ALL, LC_CTYPE, LANG }: NodeJS.ProcessEnv): boolean {
  const locale = LC_ALL || LC_CTYPE || LANG || 'UTF-8';
  return TERM !== 'dumb' && TERM !== 'linux' && /utf-?8/i.test(locale);
}

export const processTerminal: Terminal = new ProcessTerminal();

/** Text in lines that fit. What wraps them is loaded where one does not. */
async function inColumns(text: string, columns: number | undefined): Promise<string> {
  if (columns === undefined || text.split('\n').every(({ length }) => length <= columns)) return text;
  return (await import('./wrapped.ts')).wrappedLines(text, columns);
}

/** COLUMNS, if that is a number. */
function wantedColumns(env: NodeJS.ProcessEnv): number | undefined {
  const { COLUMNS: wanted = '' } = env;
  return /^[1-9]\d{0,3}$/.test(wanted) ? Number(wanted) : undefined;
}

/** Writes what there is room for, without waiting. @returns whether any of it was written */
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
