import type { IncomingMessage } from 'node:http';
import { valuesOf } from './header-names.ts';

/** Where a request is going: the only form in which it is both judged and passed on. */
export interface RequestTarget {
  /** The value of its Host header. */
  readonly host: string;
  /** Its path with the query, as it arrived, or `*`. */
  readonly path: string;
}

/** A host as RFC 9110, section 7.2, has it, without the characters that no real one has. */
const HOST = /^(?:[\w.~%-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i;
const ABSOLUTE = /^https?:\/\/([^/?]*)(.*)$/i;

/**
 * Reads the target of a request. One in absolute form replaces the Host header (RFC 9112, section 3.2.2).
 * @returns a sentence that says what is wrong if it is not clear where the request is going
 */
export function readTarget({ method, url = '', rawHeaders }: IncomingMessage): RequestTarget | string {
  const hosts = valuesOf(rawHeaders, 'host');
  if (hosts.length > 1) return 'The request has several Host headers.';
  if (url.includes('#')) return 'The target of the request has a "#".';
  const [, authority, rest = ''] = ABSOLUTE.exec(url) ?? [];
  const host = authority ?? hosts[0] ?? '';
  if (hosts.length === 0 || !HOST.test(host)) return 'The Host of the request is missing or invalid.';
  if (authority !== undefined) return { host, path: rest.startsWith('/') ? rest : `/${rest}` };
  const isOrigin = url.startsWith('/') || (url === '*' && method === 'OPTIONS');
  return isOrigin ? { host, path: url } : 'The target of the request is invalid.';
}
