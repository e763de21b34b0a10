import { hash, hkdfSync } from 'node:crypto';
import type { RandomBytes } from '../../keys/secret/index.ts';

/** Only consonants: they form no words, and none is mistaken for another (RFC 8628, section 6.1). */
const ALPHABET = 'BCDFGHJKLMNPQRSTVWXZ';
/** 20 to the power of 8: more than 34 bits, which a few guesses do not find. */
const LENGTH = 8;
const USER_CODE = new RegExp(`^[${ALPHABET}]{${LENGTH}}$`);
const CODE_BYTES = 32;
const SALT_BYTES = 32;

/** Purpose of a code. Codes of one purpose never match another. */
type CodeKind = 'user' | 'page' | 'device' | 'redirect' | 'family' | 'refresh';

/** Random letters that a person can read out. */
export function randomLetters(length: number, randomBytes: RandomBytes): string {
  let text = '';
  // 240 is a multiple of 20, so that every letter is equally likely.
  while (text.length < length)
    for (const byte of randomBytes(length)) if (byte < 240 && text.length < length) text += ALPHABET[byte % 20];
  return text;
}

/** A code for a person to type: `WDJB-MJHT`. */
export function createUserCode(randomBytes: RandomBytes): string {
  return formatUserCode(randomLetters(LENGTH, randomBytes));
}

/** A user code as it is shown, from one that was typed with or without dashes and spaces; undefined if it is none. */
export function readUserCode(text: string): string | undefined {
  const letters = text
    .slice(0, 100)
    .replaceAll(/[\s\p{Pd}]/gu, '')
    .toUpperCase();
  return USER_CODE.test(letters) ? formatUserCode(letters) : undefined;
}

function formatUserCode(letters: string): string {
  return `${letters.slice(0, LENGTH / 2)}-${letters.slice(LENGTH / 2)}`;
}

/** A code for a program, of 32 random bytes. */
export function createCode(randomBytes: RandomBytes): string {
  return Buffer.from(randomBytes(CODE_BYTES)).toString('base64url');
}

/** Creates a salt for deriving values from a code. The salt is stored, the code is not. */
export function createSalt(randomBytes: RandomBytes): string {
  return Buffer.from(randomBytes(SALT_BYTES)).toString('base64url');
}

/** Bytes that are always the same for a code and a salt (RFC 5869), so that an answer can be repeated without being kept. */
export function bytesFrom(code: string, salt: string): RandomBytes {
  let count = 0;
  return (size) => new Uint8Array(hkdfSync('sha256', code, salt, `svc-api ${count++}`, size));
}

export function digestCode(kind: CodeKind, code: string): string {
  return hash('sha256', `${kind}:${code}`, 'base64url');
}
