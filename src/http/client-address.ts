import type { Socket } from 'node:net';

/** How a server that listens on `::` sees IPv4 addresses: as parts of IPv6. */
const MAPPED = /^::ffff:(?=\d+\.)/;

/**
 * The address at the other end of a connection, which is that of the client: anybody can write any address into a
 * header. Undefined for a request that came by no connection.
 */
export function addressOf(socket: Socket | undefined): string | undefined {
  return socket?.remoteAddress?.replace(MAPPED, '');
}

/**
 * What one client has of addresses: an IPv4 address, or the /64 of an IPv6 address, as `2001:db8:0:1::/64`. Takes
 * addresses as `Socket.remoteAddress` has them; empty where there is none.
 */
export function networkOf(address = ''): string {
  const plain = address.replace(MAPPED, '').replace(/%.*$/, '');
  if (!plain.includes(':') || plain === '::1') return plain;
  const [before = '', after = ''] = plain.split('::');
  const [first, last] = [before, after].map((part) => (part === '' ? [] : part.split(':')));
  const zeros = plain.includes('::') ? Array<string>(8 - first!.length - last!.length).fill('0') : [];
  return `${[...first!, ...zeros, ...last!].slice(0, 4).join(':')}::/64`;
}

/** Whether an address is one of this machine for itself. */
export function isLoopback(address: string): boolean {
  return address === '::1' || address.startsWith('127.');
}
