import { printable } from './values.ts';

/** An origin of another scheme than the web's, such as that of an app in a web view, as its pages send it. */
export const OTHER_ORIGIN = /^(?!https?:)[a-z][a-z0-9+.-]*:\/\/[^\s/?#@*,\\]+$/;

/**
 * What is wrong with the origin of pages (RFC 6454, section 6.2), which is compared as browsers send it: scheme and
 * host in lower case, and the port if it is not the scheme's own. `*` stands for all. `null`, which every page in a
 * sandbox sends, is none.
 * @returns a sentence; undefined if nothing is wrong
 */
export function invalidOrigin(text: string): string | undefined {
  if (text === '*' || OTHER_ORIGIN.test(text)) return undefined;
  const origin = URL.canParse(text) && !text.includes('*') ? new URL(text).origin : 'null';
  if (origin === text && origin !== 'null') return undefined;
  const remedy = origin === 'null' ? 'Write it as https://app.example.org.' : `Browsers send ${printable(origin)}.`;
  return `"${printable(text)}" is not an origin. ${remedy}`;
}

/** Where a service is: a scheme, a host, and a path if it is under one. */
export const PUBLIC_URL = /^https?:\/\/[^/?#@\s]+(?:\/[A-Za-z0-9._~-]+)*$/;

/** What is wrong with the address under which clients are to reach a service; undefined if nothing is. */
export function invalidPublicUrl(text: string): string | undefined {
  // Issuers are compared character by character (RFC 8414, section 3.3).
  const isPlain = PUBLIC_URL.test(text) && URL.canParse(text) && new URL(text).href.replace(/\/$/, '') === text;
  if (isPlain) return undefined;
  const remedy = 'Write it as https://keys.example.org, without a slash at its end.';
  return `"${printable(text)}" is no address of a service. ${remedy}`;
}
