import { createReadStream } from 'node:fs';
import { CliError } from '../errors.ts';
import { KeysError } from '../../keys/basics/index.ts';

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
