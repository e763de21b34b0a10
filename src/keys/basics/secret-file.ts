import { type BigIntStats, closeSync, constants, fstatSync, openSync, readFileSync, statSync } from 'node:fs';
import { KeysError } from './errors.ts';
import { givesRights, insecureRightsOf, isOwnFile } from './file-rights.ts';
import { printable } from './text.ts';

const [MAX_BYTES, MAX_PUBLIC_BYTES] = [8192, 256 * 1024];

/** Words for errors: the name of a file that holds a secret, and a remedy as a sentence. */
interface SecretFileWords {
  readonly what: string;
  readonly remedy: string;
}

/** The contents of a file that holds a secret. */
export interface SecretText {
  /** Latin-1. */
  readonly text: string;
  /** Differs for each version of the file. */
  readonly version: string;
}

/** The version of a file that holds a secret, as in `SecretText`; empty if there is no file. */
export function versionOfFile(path: string): string {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat ? versionOf(stat) : '';
}

function versionOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return [dev, ino, size, mtimeNs, ctimeNs].join(' ');
}

/**
 * Reads a file that holds a secret.
 * @param most its largest size, in bytes
 * @throws KeysError CONFIG_UNAVAILABLE; CONFIG_INSECURE if other users can read it
 */
export function readSecretFile(path: string, words: SecretFileWords, most = MAX_BYTES): SecretText {
  return read(path, words, most, insecureRightsOf);
}

/**
 * Reads a file that is public but must not be writable by other users, of at most 256 KiB.
 * @throws KeysError CONFIG_UNAVAILABLE; CONFIG_INSECURE if other users can write it
 */
export function readPublicFile(path: string, words: SecretFileWords): string {
  const { text } = read(path, words, MAX_PUBLIC_BYTES, (stat) => {
    if (stat.uid !== 0n && !isOwnFile(stat))
      return 'belongs to another user. Change its owner to root, or to this user';
    return givesRights(stat, 0o002) ? 'can be written by every user. Run chmod o-w on it' : undefined;
  });
  return Buffer.from(text, 'latin1').toString();
}

/** @param insecureBy the problem with the file's rights, and the remedy, if there is one */
function read(
  path: string,
  { what, remedy }: SecretFileWords,
  most: number,
  insecureBy: (stat: BigIntStats) => string | undefined,
): SecretText {
  const name = `${what}, ${printable(path, 200)},`;
  const { bytes, stat } = readGuardedFile(path, most, {
    check: (stat) => {
      const insecure = insecureBy(stat);
      if (insecure !== undefined) throw new KeysError('CONFIG_INSECURE', `${name} ${insecure}.`);
    },
    failed: (reason, cause) => new KeysError('CONFIG_UNAVAILABLE', `${name} ${reason}. ${remedy}`, { cause }),
  });
  return { text: bytes.toString('latin1'), version: versionOf(stat) };
}

/** The checks of a file that other users could have read or changed. */
interface FileGuard {
  /** Throws if the rights of the file are not acceptable. */
  readonly check: (stat: BigIntStats) => void;
  /** The error for a problem, which is the end of a sentence. */
  readonly failed: (reason: string, cause?: unknown) => KeysError;
}

/** Reads a regular file, once its rights are checked. @param most its largest size, in bytes */
export function readGuardedFile(
  path: string,
  most: number,
  { check, failed }: FileGuard,
): { bytes: Buffer; stat: BigIntStats } {
  let file;
  try {
    // Without O_NONBLOCK, opening a pipe would wait for its other end.
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stat = fstatSync(file, { bigint: true });
    if (!stat.isFile()) throw failed('is not a file');
    check(stat);
    if (stat.size > most) throw failed(`is larger than ${most} bytes`);
    return { bytes: readFileSync(file), stat };
  } catch (error) {
    if (error instanceof KeysError) throw error;
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    throw failed(code === 'ENOENT' ? 'does not exist' : `cannot be read (${code})`, error);
  } finally {
    if (file !== undefined) closeSync(file);
  }
}
