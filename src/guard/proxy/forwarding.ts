import { isIP } from 'node:net';
import { valuesOf } from './header-names.ts';

/** The client's end of a connection. */
export interface Peer {
  /** Undefined where there is none, as over a Unix socket. */
  readonly address: string | undefined;
  readonly isEncrypted: boolean;
  /** Whether what it says of its own clients is believed. */
  readonly isTrusted: boolean;
}

/** Whether a header, by its canonical name, says where a request came from. */
export function isForwarding(name: string): boolean {
  return name === 'forwarded' || name === 'x-real-ip' || name.startsWith('x-forwarded-');
}

/** The headers of a trusted peer that are written anew, with it in them. */
const EXTENDED: ReadonlySet<string> = new Set(['forwarded', 'x-forwarded-for']);

/**
 * Whether a header that says where a request came from is passed on as it is. Under a name that is only taken for the
 * canonical one, it may be a client's: proxies replace what they know by its name.
 * @param name in lower case
 */
export function isBelieved(name: string, canonical: string, peer: Peer): boolean {
  return peer.isTrusted && name === canonical && !EXTENDED.has(name);
}

/**
 * The headers that tell the upstream where a request came from, names and values in turn: `Forwarded` (RFC 7239) and
 * its older relatives. What a trusted peer says of its own clients is kept.
 * @param host the value of the Host header
 */
export function forwardingHeaders(rawHeaders: readonly string[], peer: Peer, host: string): string[] {
  const protocol = peer.isEncrypted ? 'https' : 'http';
  const earlier = (name: string) => (peer.isTrusted ? valuesOf(rawHeaders, name) : []);
  const headers: string[] = [];
  const addresses = [...earlier('x-forwarded-for'), ...(peer.address === undefined ? [] : [peer.address])];
  if (addresses.length > 0) headers.push('X-Forwarded-For', addresses.join(', '));
  if (earlier('x-forwarded-proto').length === 0) headers.push('X-Forwarded-Proto', protocol);
  if (earlier('x-forwarded-host').length === 0) headers.push('X-Forwarded-Host', host);
  const element = `for=${node(peer.address)};host=${quoted(host)};proto=${protocol}`;
  headers.push('Forwarded', [...earlier('forwarded'), element].join(', '));
  return headers;
}

/** A node identifier (RFC 7239, section 6). */
function node(address: string | undefined): string {
  if (address === undefined) return 'unknown';
  return isIP(address) === 6 ? `"[${address}]"` : address;
}

/** A token if it is one, otherwise a quoted string (RFC 7239, section 4). A valid host has nothing to be escaped. */
function quoted(host: string): string {
  return /^[\w.~%-]+$/.test(host) ? host : `"${host}"`;
}
