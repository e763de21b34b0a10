import assert from 'node:assert/strict';
import { createServer, Server } from 'node:http';
import { startListening } from '../../src/http/listen-address.ts';

/** A server on a kernel without IPv6 sockets. */
class Ipv4Server extends Server {
  override listen(...args: unknown[]): this {
    if (args[1] !== '::') return super.listen(...(args as [number, string, () => void]));
    const error = Object.assign(new Error('listen EAFNOSUPPORT'), { code: 'EAFNOSUPPORT' });
    process.nextTick(() => this.emit('error', error));
    return this;
  }
}

async function listeningAt(server: Server): Promise<unknown> {
  await startListening(server, { host: '::', port: 0 });
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === 'object' && address?.address;
}

describe('a server at all addresses', () => {
  it('listens on IPv4 if the kernel has no IPv6', async () => {
    assert.equal(await listeningAt(new Ipv4Server()), '0.0.0.0');
  });

  it('listens on both families otherwise', async () => {
    assert.equal(await listeningAt(createServer()), '::');
  });
});
