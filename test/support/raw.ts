import { once } from 'node:events';
import { connect } from 'node:net';

/** Sends bytes over a socket of its own, and returns what came back until the server closed it or `until` was in it. */
export async function exchange(url: string, request: string | Buffer, until?: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname).setEncoding('utf8');
  await once(socket, 'connect');
  socket.on('error', () => {});
  socket.write(request);
  let reply = '';
  for await (const chunk of socket) {
    reply += String(chunk);
    if (until !== undefined && reply.includes(until)) break;
  }
  socket.destroy();
  return reply;
}

/** Opens a connection, sends the start of a request, and goes away. */
export async function abandon(url: string, start: string): Promise<void> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  await new Promise<void>((resolve) => {
    socket.write(start, () => resolve());
  });
  socket.destroy();
  await once(socket, 'close');
}
