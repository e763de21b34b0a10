import type { HttpBindings } from '@hono/node-server';
import type { Context } from 'hono';

/**
 * The address that a request was sent from, by its connection: anybody can write any address into a header. Undefined
 * for a request that came by no connection.
 */
export function clientAddress(c: Context): string | undefined {
  const { incoming } = (c.env ?? {}) as Partial<HttpBindings>;
  // A server that listens on `::` sees IPv4 addresses as parts of IPv6.
  return incoming?.socket?.remoteAddress?.replace(/^::ffff:(?=\d+\.)/, '');
}
