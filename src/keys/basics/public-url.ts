import { printable } from './text.ts';

/** The address of a service: a scheme, a host, and the path if it has one. */
export const PUBLIC_URL = /^https?:\/\/[^/?#@\s]+(?:\/[A-Za-z0-9._~-]+)*$/;

/** Finds the problem with the address at which clients reach a service; undefined if there is none. */
export function invalidPublicUrl(text: string): string | undefined {
  // Issuers are compared character by character (RFC 8414, section 3.3).
  const isPlain = PUBLIC_URL.test(text) && URL.canParse(text) && new URL(text).href.replace(/\/$/, '') === text;
  if (isPlain) return undefined;
  const remedy = 'Write it as https://keys.example.org, without a trailing slash.';
  return `"${printable(text)}" is not an address of a service. ${remedy}`;
}
