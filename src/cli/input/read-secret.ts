import { CliError } from '../errors.ts';

/** The most that is read, in bytes. */
const MAX_BYTES = 64 * 1024;

/** Reads a secret: asks for it where somebody can be asked, otherwise takes what stdin holds. @throws CliError USAGE, CANCELLED */
export async function readSecretInput(interactive: boolean): Promise<string> {
  const text = interactive ? await ask() : await readInput();
  const secret = text.trim();
  if (secret === '') throw new CliError('USAGE', 'The secret is missing: stdin is empty.');
  return secret;
}

async function ask(): Promise<string> {
  const { askForSecret } = await import('../prompts/secret.ts');
  return askForSecret();
}

async function readInput(): Promise<string> {
  if (process.stdin.isTTY)
    throw new CliError(
      'USAGE',
      'A secret can be typed only where stderr is a terminal too, and without --json. Pass it by a pipe or a file.',
    );
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of inputParts()) {
    parts.push(part);
    length += part.length;
    if (length > MAX_BYTES)
      throw new CliError('USAGE', `Stdin holds more than ${MAX_BYTES} bytes, which is no secret.`);
  }
  return Buffer.concat(parts).toString();
}

async function* inputParts(): AsyncGenerator<Buffer> {
  try {
    yield* process.stdin as AsyncIterable<Buffer>;
  } catch (error) {
    throw new CliError('USAGE', `Stdin could not be read: ${(error as NodeJS.ErrnoException).code ?? 'it failed'}.`);
  }
}
