import { fstatSync, type Stats } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { CliError } from '../../../cli/errors.ts';
import type { Terminal } from '../../../cli/terminal.ts';
import { KeysError, printable, type ProgressReport } from '../../../keys/basics/index.ts';

/** The input of a command. */
export interface Input {
  bytes: AsyncIterable<Uint8Array>;
  /** The number of bytes, if it is a file. */
  size: number | undefined;
  /** True if the user types it. */
  isTyped: boolean;
  close(): Promise<void>;
}

const STDIN = 0;

/**
 * Opens a file, or stdin if the path is "-" or missing.
 * @throws CliError USAGE if the path is missing and stdin is a terminal, where it would wait silently; KeysError
 * INPUT_INVALID
 */
export async function openInput(path: string | undefined, terminal: Terminal): Promise<Input> {
  if (path === undefined && terminal.isInputTerminal)
    throw new CliError(
      'USAGE',
      'There is no input. Pass a file, pipe the lines to stdin, or pass "-" to type them here.',
    );
  if (path === undefined || path === '-') {
    const size = sizeOf(fstatSync(STDIN));
    return { bytes: bytesOf('stdin', process.stdin), size, isTyped: terminal.isInputTerminal, close: async () => {} };
  }
  const file = await openFile(path);
  const bytes = bytesOf(path, file.createReadStream({ autoClose: false }));
  return { bytes, size: sizeOf(await file.stat()), isTyped: false, close: () => file.close() };
}

/** The same bytes, with reports of how many were read. */
export async function* countedBytes(
  bytes: AsyncIterable<Uint8Array>,
  size: number | undefined,
  report: ProgressReport,
): AsyncGenerator<Uint8Array> {
  let read = 0;
  for await (const chunk of bytes) {
    yield chunk;
    read += chunk.length;
    await report(read, size);
  }
}

function sizeOf(stat: Stats): number | undefined {
  return stat.isFile() ? stat.size : undefined;
}

async function openFile(path: string): Promise<FileHandle> {
  try {
    return await open(path);
  } catch (error) {
    throw cannotRead(path, error);
  }
}

async function* bytesOf(name: string, stream: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* stream;
  } catch (error) {
    throw cannotRead(name, error);
  }
}

function cannotRead(name: string, cause: unknown): KeysError {
  const { code = 'unknown' } = cause as NodeJS.ErrnoException;
  return new KeysError('INPUT_INVALID', `"${printable(name, 200)}" can't be read (${code}). Check the path.`, {
    cause,
  });
}
