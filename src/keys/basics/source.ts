import { isIP } from 'node:net';
import { isMapped, octetsOf, partsOf } from './networks.ts';

/** The origin of an action without a key, whose rate is limited. */
export interface Source {
  /** A key, a terminal, or the addresses that one client has, in 16 hexadecimal digits: see `sourceOf`. */
  readonly source: string;
  /** The surrounding network, in which one client can easily get other addresses. */
  readonly network?: string | undefined;
}

/** The number of digits of a source that is an address. */
export const SOURCE_DIGITS = 16;
/** The leading digits that are the network: the /24 of IPv4, the /48 of IPv6. */
export const NETWORK_DIGITS = 12;
/** The leading digits that one holder of networks can have: the /16 of IPv4, the /32 of IPv6. */
export const WIDE_DIGITS = 8;

/**
 * An address as the source of requests: an IPv4 address (also one mapped into IPv6), or the /64 of an IPv6 address.
 * Both have the same number of digits, so that networks are prefixes: 192.0.2.1 is `0000c00000020001`. All unknown
 * addresses are one source.
 */
export function sourceOf(address = ''): Required<Source> {
  const source = digitsOf(address.replace(/%.*$/, ''));
  return { source, network: source.slice(0, NETWORK_DIGITS) };
}

function digitsOf(address: string): string {
  const family = isIP(address);
  if (family === 0) return '';
  const parts = partsOf(address, family === 4 ? 'ipv4' : 'ipv6');
  const [a, b, c, d] = isMapped(parts) ? octetsOf(parts) : parts;
  const shown = family === 4 || isMapped(parts) ? [0, a! * 256 + b!, c!, d!] : [a!, b!, c!, d!];
  return shown.map((part) => part.toString(16).padStart(4, '0')).join('');
}
