import { printable } from './text.ts';

/** An origin of another scheme than the web's, such as that of an app in a web view, as its pages send it. */
export const OTHER_ORIGIN = /^(?!https?:)[a-z][a-z0-9+.-]*:\/\/[^\s/?#@*,\\]+$/;

/**
 * Finds what is wrong with the origin of pages (RFC 6454, section 6.2), which is compared as browsers send it: scheme and
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
