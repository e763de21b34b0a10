import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { KeysError } from '../keys/errors.ts';
import type { NoticeSettings } from '../keys/notices/settings.ts';
import { printable } from '../keys/text.ts';
import { readSigningKey, type SigningKey } from './signature.ts';

const VARIABLE = 'SVC_API_NOTICES_SECRET';
const MAX_FILE_BYTES = 4096;
const MAX_SECRETS = 5;
const FORM =
  'Write each as whsec_ and 24 to 64 bytes in base64, with white space between several. ' +
  'A new one: echo "whsec_$(openssl rand -base64 32)"';

/**
 * Reads the secrets that sign notices: from the file that the configuration names, otherwise from
 * SVC_API_NOTICES_SECRET. Several, between white space, all sign, so that a receiver can take another one.
 * @throws KeysError CONFIG_UNAVAILABLE, CONFIG_INSECURE if other users can read them, CONFIG_INVALID
 */
export function readSigningKeys({ secretFile }: NoticeSettings, env: NodeJS.ProcessEnv): SigningKey[] {
  const text = secretFile === undefined ? env[VARIABLE] : readPrivateFile(secretFile);
  if (!text?.trim()) {
    if (secretFile !== undefined) throw invalid(`${nameOf(secretFile)} is empty`);
    throw new KeysError(
      'CONFIG_UNAVAILABLE',
      `Notices have no secret that signs them. Set ${VARIABLE}, or name a file by "secretFile" under "notices".`,
    );
  }
  const from = secretFile === undefined ? VARIABLE : nameOf(secretFile);
  const texts = text.trim().split(/\s+/);
  if (texts.length > MAX_SECRETS) throw invalid(`${from} has ${texts.length} secrets; at most ${MAX_SECRETS} sign`);
  return texts.map((each, index) => {
    const key = readSigningKey(each);
    if (!key) throw invalid(`${from}: secret ${index + 1} of ${texts.length} is none of Standard Webhooks`);
    return key;
  });
}

function readPrivateFile(path: string): string {
  let file;
  try {
    // A pipe would wait for its other end.
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stat = fstatSync(file);
    if (!stat.isFile()) throw unavailable(path, 'is not a file');
    // One that belongs to another user, as root, can be given to this one by its group alone.
    const forbidden = stat.uid === process.geteuid?.() ? 0o077 : 0o037;
    if ((stat.mode & forbidden) !== 0)
      throw new KeysError('CONFIG_INSECURE', `${nameOf(path)} can be accessed by other users. Run chmod 600 on it.`);
    const bytes = Buffer.alloc(MAX_FILE_BYTES);
    return bytes.subarray(0, readSync(file, bytes)).toString('latin1');
  } catch (error) {
    if (error instanceof KeysError) throw error;
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    throw unavailable(path, code === 'ENOENT' ? 'does not exist' : `cannot be read (${code})`, error);
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

function nameOf(path: string): string {
  return `The file of the secrets that sign notices, ${printable(path, 200)},`;
}

function unavailable(path: string, reason: string, cause?: unknown): KeysError {
  const message = `${nameOf(path)} ${reason}. Correct "secretFile" under "notices".`;
  return new KeysError('CONFIG_UNAVAILABLE', message, { cause });
}

function invalid(reason: string): KeysError {
  return new KeysError('CONFIG_INVALID', `${reason}. ${FORM}`);
}
