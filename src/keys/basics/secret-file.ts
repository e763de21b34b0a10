import { type BigIntStats, closeSync, constants, fstatSync, openSync, readSync, statSync } from 'node:fs';
import { KeysError } from './errors.ts';
import { printable } from './values.ts';

const MAX_BYTES = 8192;

/** How errors name a file that holds a secret, and what is to be done about it, as a sentence. */
interface SecretFileWords {
  readonly what: string;
  readonly remedy: string;
}

/** A secret as its file has it. */
export interface SecretText {
  /** Latin-1. */
  readonly text: string;
  /** Differs for each version of the file. */
  readonly version: string;
}

/** The version of a file that holds a secret; empty if there is none. It is as that of `SecretText`. */
export function versionOfFile(path: string): string {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat ? versionOf(stat) : '';
}

function versionOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return [dev, ino, size, mtimeNs, ctimeNs].join(' ');
}

/**
 * Reads a file that holds a secret, of at most 8 KiB.
 * @throws KeysError CONFIG_UNAVAILABLE; CONFIG_INSECURE if other users can read it
 */
export function readSecretFile(path: string, words: SecretFileWords): SecretText {
  const name = `${words.what}, ${printable(path, 200)},`;
  const unavailable = (reason: string, cause?: unknown) =>
    new KeysError('CONFIG_UNAVAILABLE', `${name} ${reason}. ${words.remedy}`, { cause });
  let file;
  try {
    // A pipe would wait for its other end.
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stat = fstatSync(file, { bigint: true });
    if (!stat.isFile()) throw unavailable('is not a file');
    // One that belongs to another user, as root, can be given to this one by its group alone.
    const forbidden = stat.uid === BigInt(process.geteuid?.() ?? -1) ? 0o077n : 0o037n;
    if ((stat.mode & forbidden) !== 0n)
      throw new KeysError('CONFIG_INSECURE', `${name} can be accessed by other users. Run chmod 600 on it.`);
    if (stat.size > MAX_BYTES) throw unavailable(`is larger than ${MAX_BYTES} bytes`);
    const bytes = Buffer.alloc(MAX_BYTES);
    return { text: bytes.subarray(0, readSync(file, bytes)).toString('latin1'), version: versionOf(stat) };
  } catch (error) {
    if (error instanceof KeysError) throw error;
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    throw unavailable(code === 'ENOENT' ? 'does not exist' : `cannot be read (${code})`, error);
  } finally {
    if (file !== undefined) closeSync(file);
  }
}
