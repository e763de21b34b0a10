import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { Console } from 'node:console';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { alone, type Surroundings, within } from './cli-here.ts';
import { type Finished } from './process.ts';
import { tempFolder } from './temp.ts';

/** The build, not the sources. */
const PROGRAM = new URL('../../dist/cli/own-program.js', import.meta.url).href;

/** Thrown in place of the end of the process. */
class Ended extends Error {
  /** The code of oclif's own exit error, which is not reported. */
  readonly code = 'EEXIT';
}

/**
 * Runs the whole built program in this process, one run at a time and without a terminal, as `bin/run.js` does, with
 * oclif, help and the report of unexpected errors. It does not start a process, or read again what is read from the
 * environment once, such as the width.
 */
export function runProgramHere(args: readonly string[], surroundings: Surroundings = {}): Promise<Finished> {
  return alone(() => within(surroundings, () => captured(() => run(args))));
}

async function run(args: readonly string[]): Promise<void> {
  const program = (await import(PROGRAM)) as typeof import('../../src/cli/own-program.ts');
  await program.runOwnProgram(args).catch((end: unknown) => {
    if (!(end instanceof Ended)) throw end;
  });
}

/** Runs `work` with files in place of stdout and stderr, since the program also writes to their descriptors. */
async function captured(work: () => Promise<void>): Promise<Finished> {
  const folder = tempFolder();
  const files = { stdout: join(folder, 'stdout'), stderr: join(folder, 'stderr') };
  const streams = { stdout: new FileStream(files.stdout), stderr: new FileStream(files.stderr) };
  const own = Object.getOwnPropertyDescriptors(process);
  const { console } = globalThis;
  try {
    Object.defineProperties(process, {
      stdout: { configurable: true, value: streams.stdout },
      stderr: { configurable: true, value: streams.stderr },
    });
    globalThis.console = new Console(streams.stdout, streams.stderr);
    let isEnded = false;
    process.exit = (code) => {
      // The caller's code can catch this, report it, and exit again.
      if (!isEnded) process.exitCode = code ?? process.exitCode;
      isEnded = true;
      for (const stream of Object.values(streams)) stream.isOpen = false;
      throw new Ended();
    };
    await work();
    const [stdout, stderr] = [readFileSync(files.stdout, 'utf8'), readFileSync(files.stderr, 'utf8')];
    return { stdout, stderr, code: Number(process.exitCode), signal: null };
  } finally {
    globalThis.console = console;
    Object.defineProperties(process, { stdout: own.stdout, stderr: own.stderr });
    for (const { fd } of Object.values(streams)) closeSync(fd);
  }
}

/** An output stream that is not a terminal. */
class FileStream extends Writable {
  readonly fd: number;
  isOpen = true;

  constructor(path: string) {
    super();
    this.fd = openSync(path, 'w');
  }

  /** Writes at once; a stream would buffer. */
  override write(text: string | Uint8Array, ...more: unknown[]): boolean {
    if (this.isOpen) writeSync(this.fd, typeof text === 'string' ? Buffer.from(text) : text);
    const done = more.at(-1);
    if (typeof done === 'function') done();
    return true;
  }
}
