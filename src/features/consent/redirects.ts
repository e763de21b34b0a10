import { printable } from '../../keys/basics/index.ts';

/** A loopback address with any port, and the rest (RFC 8252, section 7.3); many applications write its name. */
const LOOPBACK = /^(http:\/\/(?:127\.0\.0\.1|\[::1\]|localhost))(?::(\d{1,5}))?([/?].*)?$/;
/** A scheme of an application's own, which is a domain in reverse (RFC 8252, section 7.1). */
const PRIVATE = /^[a-z][a-z0-9+-]*(?:\.[a-z0-9+-]+)+:\/(?!\/)/;
/** Valid characters of a URI (RFC 3986, section 2). */
const URI = /^[A-Za-z0-9._~:/?[\]@!$&'()*+,;=%-]+$/;
const MAX_LENGTH = 1000;

/**
 * Finds the problem of a registered redirect URI, if any. It must be https, http on a loopback address, or a scheme of
 * the application's own, such as `com.example.app:/done`.
 */
export function invalidRedirect(uri: string): string | undefined {
  const isKnown = LOOPBACK.test(uri) || PRIVATE.test(uri) || uri.startsWith('https://');
  const parsed = isKnown && uri.length <= MAX_LENGTH && URI.test(uri) && URL.canParse(uri) ? new URL(uri) : undefined;
  if (parsed && parsed.username === '' && parsed.password === '') return undefined;
  const remedy = 'Write it as https://app.example.org/done, http://127.0.0.1/done or com.example.app:/done.';
  return `"${printable(uri)}" is not a redirect URI. ${remedy}`;
}

/**
 * Compares a redirect URI with the registered one, character by character (RFC 9700, section 2.1), except for the port
 * of a loopback address, which the system assigns (RFC 8252, section 7.3).
 */
export function isSameRedirect(registered: string, given: string): boolean {
  if (given === registered) return true;
  const [known, asked] = [LOOPBACK.exec(registered), LOOPBACK.exec(given)];
  if (!known || !asked || known[1] !== asked[1] || (known[3] ?? '') !== (asked[3] ?? '')) return false;
  const port = Number(asked[2] ?? 80);
  return port > 0 && port < 65_536 && String(port) === (asked[2] ?? '80');
}

/** The address to send a person back to: the URI as it was registered, with parameters behind its own. */
export function redirectTo(uri: string, parameters: Readonly<Record<string, string | null>>): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== null) given.set(name, value);
  return `${uri}${uri.includes('?') ? '&' : '?'}${given.toString()}`;
}
