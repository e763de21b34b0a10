import { printable } from './text.ts';

/** An origin with another scheme than http or https, as pages of an app in a web view send it. */
export const OTHER_ORIGIN = /^(?!https?:)[a-z][a-z0-9+.-]*:\/\/[^\s/?#@*,\\]+$/;

/**
 * Finds the problem with an origin (RFC 6454, section 6.2). Origins are compared as browsers send them: scheme and host
 * in lower case, and the port unless it is the default. `*` stands for all. `null` is refused, since every sandboxed
 * page sends it.
 * @returns a sentence; undefined if there is no problem
 */
export function invalidOrigin(text: string): string | undefined {
  if (text === '*' || OTHER_ORIGIN.test(text)) return undefined;
  const origin = URL.canParse(text) && !text.includes('*') ? new URL(text).origin : 'null';
  if (origin === text && origin !== 'null') return undefined;
  const remedy = origin === 'null' ? 'Write it as https://app.example.org.' : `Browsers send ${printable(origin)}.`;
  return `"${printable(text)}" is not an origin. ${remedy}`;
}
