import { once } from 'node:events';
import { connect, type NetConnectOpts, type Socket } from 'node:net';

/** Connects to a server. Connection errors are ignored: tests check how it ends. */
export async function connectTo(url: string, options: Partial<NetConnectOpts> = {}): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect({ port: Number(port), host: hostname, ...options });
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

/** Waits for the end of a connection, and returns everything received. */
export async function readToEnd(socket: Socket): Promise<string> {
  let text = '';
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
  await closed(socket);
  return text;
}

/** Waits for the end of a connection, even by an error. */
export function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    if (socket.closed) resolve();
    else socket.once('close', () => resolve());
  });
}
