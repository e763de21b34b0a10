import { createReadStream } from 'node:fs';
import { KeysError } from '../../keys/errors.ts';

const MAX_BYTES = 8 * 1024 * 1024;

/**
 * Reads UTF-8 text from a file of any kind, or from stdin if the path is `-`.
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
