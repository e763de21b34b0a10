import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { tempFolder } from './temp.ts';

/** A pipe that receives the output of a program. */
export interface Fifo {
  /** The descriptor for the program. */
  input: number;
  /** Drains the pipe, up to 64 KiB. */
  read(): string;
  close(): void;
}

/** Opens a pipe without ever blocking this process. */
export function openFifo({ isFull = false } = {}): Fifo {
  const path = join(tempFolder(), 'pipe');
  execFileSync('mkfifo', [path]);
  // Opened separately from the program's descriptor, because flags belong to each opening.
  // oxlint-disable-next-line no-bitwise -- flags of open(2)
  const own = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  const input = openSync(path, 'r+');
  if (isFull) for (const size of [4096, 1]) unlessBlocked(() => fill(own, size));
  return {
    input,
    read() {
      const chunk = Buffer.alloc(65_536);
      return chunk.toString('latin1', 0, unlessBlocked(() => readSync(own, chunk)) ?? 0);
    },
    close() {
      closeSync(own);
      closeSync(input);
    },
  };
}

function fill(descriptor: number, size: number): never {
  for (;;) writeSync(descriptor, ' '.repeat(size));
}

function unlessBlocked<Result>(work: () => Result): Result | undefined {
  try {
    return work();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    return undefined;
  }
}
