import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import type { NetConnectOpts, Socket } from 'node:net';
import { createApp } from '../../src/service/create-app.ts';
import { networkOf } from '../../src/http/client-address.ts';
import { affordableConnections, connectionsFrom } from '../../src/http/connections.ts';
import { listen, type RunningServer } from '../../src/http/listen.ts';
import type { ServerLimits } from '../../src/http/server.ts';
import { closed, connectTo, readToEnd } from '../support/client.ts';
import { openTestKeys, type TestKeys } from '../support/keys.ts';
import { collectingLog } from '../support/log.ts';

describe('connections', () => {
  let open: TestKeys;
  const { log, lines } = collectingLog();
  const servers: RunningServer[] = [];
  const sockets: Socket[] = [];
  before(async () => {
    open = await openTestKeys();
  });
  after(() => open.store.close());
  beforeEach(() => void (lines.length = 0));
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    await Promise.all(servers.splice(0).map((server) => server.stop(0)));
  });

  const start = async (limits: ServerLimits, host = '127.0.0.1') => {
    const app = await createApp({ keys: open.keys, log });
    const server = await listen({ app, host, port: 0, limits });
    servers.push(server);
    return server.url;
  };
  const join = async (url: string, options: Partial<NetConnectOpts> = {}) => {
    const socket = await connectTo(url, options);
    sockets.push(socket);
    return socket;
  };
  /** True if the server answers on a new connection. */
  const isAnswered = async (url: string, localAddress = '127.0.0.1') => {
    const socket = await join(url, { localAddress });
    socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    return (await readToEnd(socket)).startsWith('HTTP/1.1 200 ');
  };

  for (const [what, bytes, status] of [
    ['is not HTTP', 'hello\r\n\r\n', 400],
    ['never comes', '', 408],
  ] as const) {
    it(`are answered and closed where the request ${what}, though the client never closes them`, async () => {
      const url = await start(bytes === '' ? { headersMs: 100 } : {});
      const end = Promise.withResolvers<Socket>();
      const notice = (message: unknown) => end.resolve((message as { socket: Socket }).socket);
      subscribe('net.server.socket', notice);
      const socket = await join(url, { allowHalfOpen: true });
      socket.write(bytes);
      const [answer] = (await once(socket, 'data')) as [Buffer];
      assert.equal(Number(/^HTTP\/1\.1 (\d+) /.exec(answer.toString())![1]), status);
      await closed(await end.promise);
      assert.equal(socket.closed, false);
      unsubscribe('net.server.socket', notice);
    });
  }

  it('with a body that dribbles are given an overall time', async () => {
    const url = await start({ headersMs: 100, requestMs: 300 });
    const socket = await join(url);
    socket.write('POST /elsewhere HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n');
    const dribble = setInterval(() => socket.write('x'), 10);
    const text = await readToEnd(socket);
    clearInterval(dribble);
    assert.match(text, /HTTP\/1\.1 408 /);
  });

  it('are bounded in all, and a new one is answered again as soon as one has ended', async () => {
    const url = await start({ connections: 3 });
    const held = [await join(url), await join(url), await join(url)];
    assert.equal(await isAnswered(url), false);
    assert.deepEqual(
      lines.map(({ fields, message }) => [message, fields]),
      [['connection refused', { reason: 'too many connections', address: '127.0.0.1' }]],
    );
    held[0]!.destroy();
    while (!(await isAnswered(url)));
  });

  it('are bounded for each address, and others are still answered', async () => {
    const url = await start({ connectionsPerAddress: 2 });
    for (let number = 0; number < 2; number += 1) await join(url, { localAddress: '127.0.0.2' });
    assert.equal(await isAnswered(url, '127.0.0.2'), false);
    assert.equal(await isAnswered(url, '127.0.0.3'), true);
    assert.deepEqual(
      lines.map(({ fields, message }) => [message, fields]),
      [['connection refused', { reason: 'too many connections from this address', address: '127.0.0.2' }]],
    );
  });

  it('of a proxy on this machine may be all that there are', async () => {
    const url = await start({ connections: 20 });
    for (let number = 0; number < 19; number += 1) await join(url);
    assert.equal(await isAnswered(url), true);
  });

  it('are fewer than the descriptors that the process may have, however many are asked for', () => {
    const { userLimits } = process.report.getReport() as unknown as {
      userLimits: { open_files: { soft: number | 'unlimited' } };
    };
    const { soft } = userLimits.open_files;
    assert.ok(affordableConnections(Number.MAX_SAFE_INTEGER) < (soft === 'unlimited' ? Infinity : soft));
    assert.equal(affordableConnections(10), 10);
  });

  it('from one address of another machine may by default be half of all, and with a limit as many as that says', () => {
    const limits = { connections: 100 };
    assert.deepEqual(
      ['192.0.2.1', '2001:db8:0:1::/64', '127.0.0.1', '::1', ''].map((network) => connectionsFrom(network, limits)),
      [50, 50, 100, 100, 100],
    );
    for (const network of ['192.0.2.1', '127.0.0.1'])
      assert.equal(connectionsFrom(network, { ...limits, connectionsPerAddress: 80 }), 80);
  });

  const rows: [address: string | undefined, network: string][] = [
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8::5:6', '2001:db8:0:0::/64'],
    ['2001:db8:1:2::', '2001:db8:1:2::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::1', '::1'],
    [undefined, ''],
  ];
  for (const [address, network] of rows)
    it(`from ${address} count as those of ${network || 'no network'}`, () => assert.equal(networkOf(address), network));
});
