import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { createApp } from '../../src/service/create-app.ts';
import { listen } from '../../src/http/listen.ts';
import { openTestKeys, type TestKeys } from '../support/keys.ts';
import { accepts } from '../support/port.ts';
import { until } from '../support/until.ts';

/** In milliseconds; longer than a test can take. */
const FOREVER = 600_000;

describe('a server that stops', () => {
  let open: TestKeys;
  const sockets: Socket[] = [];
  before(async () => {
    open = await openTestKeys();
  });
  after(async () => {
    for (const socket of sockets) socket.destroy();
    await open.store.close();
  });

  const start = async () => {
    const server = await listen({ app: await createApp({ keys: open.keys }), host: '127.0.0.1', port: 0 });
    const { hostname, port } = new URL(server.url);
    const socket = connect(Number(port), hostname).setEncoding('utf8');
    socket.on('error', () => {});
    sockets.push(socket);
    await once(socket, 'connect');
    // When this answer comes, the server has accepted the earlier connection.
    assert.equal((await fetch(`${server.url}/healthz`)).status, 200);
    return { server, socket };
  };

  it('does not wait for a connection on which nothing was sent', async () => {
    const { server, socket } = await start();
    const closed = once(socket, 'close');
    await server.stop(FOREVER);
    await closed;
  });

  it('still answers a request that is arriving', async () => {
    const { server, socket } = await start();
    socket.write('GET /healthz HTTP/1.1\r\n');
    assert.equal((await fetch(`${server.url}/healthz`)).status, 200);
    const stopped = server.stop(FOREVER);
    await until(async () => !(await accepts(Number(new URL(server.url).port))));
    const reply = once(socket, 'data');
    socket.write('Host: x\r\n\r\n');
    assert.match(String((await reply)[0]), /^HTTP\/1\.1 200 /);
    await stopped;
  });
});
