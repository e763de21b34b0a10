import { createSecretKey, type KeyObject } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { KeysError } from '../keys/errors.ts';
import { printable } from '../keys/text.ts';

const KEY_BYTES = 32;
/** Enough for the key in hex and white space around it. */
const MAX_FILE_BYTES = 256;
const HEX = /^[0-9a-f]{64}$/i;
const BASE64 = /^[0-9A-Za-z+/]{43}=?$/;

/**
 * Reads the key of the audit log from the file that SVC_API_AUDIT_KEY names: 32 bytes, raw, in hex or in base64.
 * @returns undefined if the variable is not set
 * @throws KeysError STORE_AUDIT_KEY for a file that is missing, has another content, or that other users can access
 */
export function readAuditKey(env: NodeJS.ProcessEnv): KeyObject | undefined {
  const path = env['SVC_API_AUDIT_KEY'];
  if (!path) return undefined;
  const key = decode(readPrivateFile(path));
  if (key) return createSecretKey(key);
  throw unusable(path, 'does not hold 32 bytes, raw, in hex or in base64. Make a new one: openssl rand -hex 32');
}

function readPrivateFile(path: string): Buffer {
  let file;
  try {
    // A pipe would wait for its other end.
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stat = fstatSync(file);
    if (!stat.isFile()) throw unusable(path, 'is not a file');
    const own = process.geteuid?.();
    // Who owns a file reads it, and root reads all.
    if (own !== 0 && stat.uid !== own && stat.uid !== 0)
      throw unusable(path, 'belongs to another user. Let it belong to root, or to the user who runs this');
    // One that belongs to root can be given to another user by its group alone; root reads those of the service's user.
    const forbidden = stat.uid === own ? 0o077 : 0o037;
    if ((stat.mode & forbidden) !== 0) throw unusable(path, 'can be accessed by other users. Run chmod 600 on it');
    const bytes = Buffer.alloc(MAX_FILE_BYTES);
    return bytes.subarray(0, readSync(file, bytes));
  } catch (error) {
    if (error instanceof KeysError) throw error;
    throw unusable(path, `cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown'})`, error);
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

function decode(bytes: Buffer): Buffer | undefined {
  if (bytes.length === KEY_BYTES) return bytes;
  const text = bytes.toString('latin1').trim();
  if (HEX.test(text)) return Buffer.from(text, 'hex');
  return BASE64.test(text) ? Buffer.from(text, 'base64') : undefined;
}

function unusable(path: string, reason: string, cause?: unknown): KeysError {
  const message = `The key of the audit log, ${printable(path)} as SVC_API_AUDIT_KEY says, ${reason}.`;
  return new KeysError('STORE_AUDIT_KEY', message, { cause });
}
