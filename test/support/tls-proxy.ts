import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { TLSSocket } from 'node:tls';
import { ROOT } from './process.ts';

const FOLDER = join(ROOT, 'test/fixtures/tls');
/** The self-signed certificate of "localhost". */
export const CERTIFICATE = join(FOLDER, 'certificate.pem');

/** A server in front of a local PostgreSQL without TLS, which speaks TLS as PostgreSQL does. */
export async function startTlsProxy(target: number): Promise<{ port: number; server: Server }> {
  const [key, cert] = [readFileSync(join(FOLDER, 'key.pem')), readFileSync(CERTIFICATE)];
  const server = createServer((socket) => {
    // The client first asks for TLS; the answer is one letter.
    socket.once('data', () => {
      socket.write('S');
      const near = new TLSSocket(socket, { isServer: true, key, cert });
      const far = connect(target, '127.0.0.1');
      near.on('error', () => far.destroy());
      far.on('error', () => near.destroy());
      near.pipe(far).pipe(near);
    });
  }).listen(0);
  await once(server, 'listening');
  return { port: (server.address() as AddressInfo).port, server };
}
