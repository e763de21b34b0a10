import { CliError } from '../errors.ts';

const MAX_BYTES = 64 * 1024;

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
      'A secret can only be typed if stderr is a terminal too, without --json and --no-input. ' +
        'Pass it by a pipe or a file.',
    );
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stdinChunks()) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > MAX_BYTES)
      throw new CliError(
        'USAGE',
        `Stdin has more than ${MAX_BYTES} bytes, which can't be a secret. Pass the secret alone.`,
      );
  }
  return Buffer.concat(chunks).toString();
}

async function* stdinChunks(): AsyncGenerator<Buffer> {
  try {
    yield* process.stdin as AsyncIterable<Buffer>;
  } catch (error) {
    const { code = 'UNKNOWN' } = error as NodeJS.ErrnoException;
    throw new CliError('USAGE', `Stdin could not be read (${code}). Pass the secret by a pipe or a file.`);
  }
}
