import { closeSync, constants, createReadStream, fstatSync, openSync, readFileSync, type Stats } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { CliError } from '../errors.ts';
import type { Terminal } from '../terminal.ts';
import { KeysError, printable, type ProgressReport } from '../../keys/basics/index.ts';

/** The contents of a regular file of limited size; undefined for anything else, including links and pipes. */
export function readPlainFile(path: Buffer | string, maxBytes: number): Buffer | undefined {
  let descriptor: number;
  try {
    // Without O_NONBLOCK, opening a pipe would wait.
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    return undefined;
  }
  try {
    const stat = fstatSync(descriptor);
    return stat.isFile() && stat.size <= maxBytes ? readFileSync(descriptor) : undefined;
  } finally {
    closeSync(descriptor);
  }
}

const MAX_BYTES = 8 * 1024 * 1024;

/**
 * Reads UTF-8 text from any kind of file, or from stdin if the path is `-`.
 * @param name the name of the file in errors
 * @throws KeysError INPUT_INVALID if it can't be read, is not UTF-8, or is larger than 8 MiB
 */
export async function readText(path: string, name: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    const stream: AsyncIterable<Uint8Array> = path === '-' ? process.stdin : createReadStream(path);
    for await (const chunk of stream) {
      chunks.push(chunk);
      size += chunk.length;
      if (size > MAX_BYTES) break;
    }
  } catch (error) {
    const { code = 'UNKNOWN' } = error as NodeJS.ErrnoException;
    throw new KeysError('INPUT_INVALID', `The file ${name} could not be read (${code}). Check the path.`, {
      cause: error,
    });
  }
  if (size > MAX_BYTES)
    throw new KeysError(
      'INPUT_INVALID',
      `The file ${name} is larger than ${MAX_BYTES / 1024 / 1024} MiB. Declare fewer keys.`,
    );
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks));
  } catch (error) {
    throw new KeysError('INPUT_INVALID', `The file ${name} is not UTF-8 text. Save it as UTF-8.`, { cause: error });
  }
}

const MAX_SECRET_BYTES = 64 * 1024;

/** Reads a secret: asks for it if `interactive`, otherwise reads stdin. @throws CliError USAGE, CANCELLED */
export async function readSecretInput(interactive: boolean): Promise<string> {
  const text = interactive ? await askForSecret() : await readStdin();
  const secret = text.trim();
  if (secret === '') throw new CliError('USAGE', 'The secret is missing: stdin is empty. Pipe the secret to it.');
  return secret;
}

async function askForSecret(): Promise<string> {
  const { withPrompts } = await import('../prompts/with-prompts.ts');
  return withPrompts((prompts) => prompts.secret('Secret'));
}

async function readStdin(): Promise<string> {
  if (process.stdin.isTTY)
    throw new CliError(
      'USAGE',
      'You can only type a secret if stderr is a terminal, too, without --json and --no-input. ' +
        'Pass it through a pipe or a file.',
    );
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stdinChunks()) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > MAX_SECRET_BYTES)
      throw new CliError(
        'USAGE',
        `Stdin has more than ${MAX_SECRET_BYTES} bytes, which can't be a secret. Pass only the secret.`,
      );
  }
  return Buffer.concat(chunks).toString();
}

async function* stdinChunks(): AsyncGenerator<Buffer> {
  try {
    yield* process.stdin as AsyncIterable<Buffer>;
  } catch (error) {
    const { code = 'UNKNOWN' } = error as NodeJS.ErrnoException;
    throw new CliError('USAGE', `Stdin could not be read (${code}). Pass the secret through a pipe or a file.`);
  }
}

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
