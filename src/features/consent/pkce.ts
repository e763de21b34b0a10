import { hash, timingSafeEqual } from 'node:crypto';

/** RFC 7636, section 4.1. */
const VERIFIER = /^[A-Za-z0-9._~-]{43,128}$/;
/** The base64url of a SHA-256. */
const CHALLENGE = /^[A-Za-z0-9_-]{43}$/;

/** Checks whether a text can be an S256 challenge (RFC 7636, section 4.2). `plain` is not supported. */
export function isChallenge(text: string): boolean {
  return CHALLENGE.test(text);
}

/** Checks whether a challenge was made of this verifier (RFC 7636, section 4.6). */
export function answersChallenge(verifier: string, challenge: string): boolean {
  if (!VERIFIER.test(verifier)) return false;
  const [made, given] = [hash('sha256', verifier, 'base64url'), challenge].map((text) => Buffer.from(text));
  return made!.length === given!.length && timingSafeEqual(made!, given!);
}
