import { type FileHandle, open } from 'node:fs/promises';
import { KeysError } from '../../keys/errors.ts';
import { printable } from '../../keys/text.ts';
import { CliError } from '../errors.ts';
import type { Terminal } from '../terminal.ts';

/** Where a command reads from. */
export interface Input {
  bytes: AsyncIterable<Uint8Array>;
  close(): Promise<void>;
}

/**
 * Opens the file that was named, or stdin for "-" and where none was.
 * @throws CliError USAGE where nobody would know that something is to be typed; KeysError INPUT_INVALID
 */
export async function openInput(path: string | undefined, terminal: Terminal): Promise<Input> {
  if (path === undefined && terminal.isInputTerminal)
    throw new CliError(
      'USAGE',
      'Nothing to read is given. Pass a file, or "-" to type the lines here, or send them through a pipe.',
    );
  if (path === undefined || path === '-') return { bytes: readable('stdin', process.stdin), close: async () => {} };
  const file = await openFile(path);
  return { bytes: readable(path, file.createReadStream({ autoClose: false })), close: () => file.close() };
}

async function openFile(path: string): Promise<FileHandle> {
  try {
    return await open(path);
  } catch (error) {
    throw cannotRead(path, error);
  }
}

async function* readable(name: string, stream: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
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
