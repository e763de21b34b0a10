import { stripVTControlCharacters } from 'node:util';
import { type IPty, spawn } from '@lydell/node-pty';
import { BIN, cleanEnv } from './process.ts';

/** How long to wait for a text, or for the exit of the program. */
const DEADLINE_MS = 300_000;

export const KEYS = {
  enter: '\r',
  space: ' ',
  down: '\u001b[B',
  up: '\u001b[A',
  pageDown: '\u001b[6~',
  tab: '\t',
  /** Clears the line. */
  ctrlU: '\u0015',
  ctrlC: '\u0003',
  ctrlD: '\u0004',
  ctrlQ: '\u0011',
  ctrlS: '\u0013',
  ctrlZ: '\u001a',
  ctrlBackslash: '\u001c',
} as const;

/** The size of a terminal. */
export interface ScreenSize {
  columns?: number;
  rows?: number;
}

/** A program on its own pseudo-terminal. */
export class TerminalSession {
  #pty: IPty;
  #written = '';
  #from = 0;
  #exit: number | undefined;
  /** The signal that ended the program, if one did. */
  signal: number | undefined;
  #changed = () => {};

  constructor(
    file: string,
    args: readonly string[],
    env: NodeJS.ProcessEnv,
    { columns: cols = 200, rows = 60 }: ScreenSize = {},
  ) {
    this.#pty = spawn(file, [...args], { name: 'xterm', cols, rows, env: cleanEnv(env) });
    this.#pty.onData((data) => {
      this.#written += data;
      this.#changed();
    });
    this.#pty.onExit(({ exitCode, signal }) => {
      this.#exit = exitCode;
      this.signal = signal;
      this.#changed();
    });
  }

  /** The terminal's output as plain text. */
  get screen(): string {
    return stripVTControlCharacters(this.#written).replaceAll('\r', '');
  }

  /** The terminal's output, including control sequences. */
  get raw(): string {
    return this.#written;
  }

  /** True if the output has colors or other styles. */
  get hasColors(): boolean {
    return this.#written
      .split('\u001b[')
      .slice(1)
      .some((text) => /^[0-9;]*m/.test(text));
  }

  /** Waits for a text after the last one that was seen. */
  async see(text: string, deadlineMs?: number): Promise<void> {
    await this.#until(() => this.screen.indexOf(text, this.#from) >= 0, `"${text}"`, deadlineMs);
    this.#from = this.screen.indexOf(text, this.#from) + text.length;
  }

  /** Types keys. After that, `see` ignores earlier output. */
  type(keys: string): void {
    this.#from = this.screen.length;
    this.#pty.write(keys);
  }

  /** Waits for a text, then types. */
  async answer(text: string, keys: string): Promise<void> {
    await this.see(text);
    this.type(keys);
  }

  /** Resizes the terminal, which signals the program. */
  resize(columns: number, rows: number): void {
    this.#pty.resize(columns, rows);
  }

  /** Waits until the program exits. @returns the exit code */
  async end(): Promise<number> {
    await this.#until(() => this.#exit !== undefined, 'the end');
    return this.#exit!;
  }

  /** Sends the program a signal. */
  kill(signal: NodeJS.Signals): void {
    this.#pty.kill(signal);
  }

  /** Ends the program if it still runs. */
  close(): void {
    if (this.#exit === undefined) this.#pty.kill('SIGKILL');
  }

  #until(reached: () => boolean, what: string, deadlineMs = DEADLINE_MS): Promise<void> {
    return new Promise((resolve, reject) => {
      const deadline = setTimeout(
        () => reject(new Error(`Waited in vain for ${what}. Written so far:\n${this.screen}`)),
        deadlineMs,
      );
      this.#changed = () => {
        const done = reached();
        if (!done && this.#exit === undefined) return;
        clearTimeout(deadline);
        if (done) resolve();
        else reject(new Error(`The program ended with ${this.#exit} before ${what}. It wrote:\n${this.screen}`));
      };
      this.#changed();
    });
  }
}

/** Starts the built CLI on a terminal; `stdoutTo` redirects its stdout like `> file`. */
export function cliOnTerminal(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  stdoutTo?: string,
  size?: ScreenSize,
): TerminalSession {
  const command = [process.execPath, BIN, ...args];
  if (stdoutTo === undefined) return new TerminalSession(command[0]!, command.slice(1), env, size);
  const script = ['-c', 'out=$1; shift; exec "$@" > "$out"', 'sh', stdoutTo, ...command];
  return new TerminalSession('/bin/sh', script, env, size);
}
