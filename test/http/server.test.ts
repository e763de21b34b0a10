import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { Hono } from 'hono';
import { createApp } from '../../src/service/create-app.ts';
import { isInClear } from '../../src/http/listen-address.ts';
import { listen } from '../../src/http/listen.ts';
import { createPrincipal, openTestKeys, type TestKeys } from '../support/keys.ts';
import { collectingLog } from '../support/log.ts';
import { accepts } from '../support/port.ts';
import { rawPost } from '../support/raw-http.ts';
import { query } from '../support/server.ts';
import { until } from '../support/until.ts';

describe('the server', () => {
  let open: TestKeys;
  let secret: string;
  before(async () => {
    open = await openTestKeys();
    ({ secret } = await createPrincipal(open.keys, { name: 'Guest', roles: ['GUEST'] }));
  });
  after(() => open.store.close());

  /** A server with a field that resolves when the test allows it. */
  const startSlow = async () => {
    const started = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<number>();
    const resolvers = { Query: { slow: () => (started.resolve(), answer.promise) } };
    const typeDefs = 'extend type Query { slow: Int @requires(resource: ME, action: READ_OWN) }';
    const app = await createApp({ keys: open.keys, extensions: [{ typeDefs, resolvers }] });
    return {
      server: await listen({ app, host: '127.0.0.1', port: 0 }),
      started: started.promise,
      answer: answer.resolve,
    };
  };

  /** Sends a request over a new connection, which stays open. */
  const connectTo = (url: string, document: string): Socket => {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    const headers = [`Authorization: Bearer ${secret}`, 'Content-Type: application/json'];
    socket.write(rawPost(headers, JSON.stringify({ query: document })));
    return socket;
  };

  it('lets a request in flight finish when it stops, accepts no other, and does not wait for idle connections', async () => {
    const { server, started, answer } = await startSlow();
    const other = await startSlow();
    const inFlight = connectTo(server.url, '{ slow }');
    await started;
    const idle = connectTo(other.server.url, '{ online }');
    await once(idle, 'data');
    const letGo = once(idle, 'close');
    const silent = connect(Number(new URL(server.url).port), '127.0.0.1');
    await once(silent, 'connect');
    const stopped = server.stop(60_000);
    await until(async () => !(await accepts(Number(new URL(server.url).port))));
    await once(silent, 'close');
    answer(1);
    assert.match(String((await once(inFlight, 'data'))[0]), /\{"data":\{"slow":1\}\}$/);
    // Both clients keep their connections open. A running server would close the idle one after a while.
    const first = await Promise.race([stopped.then(() => 'stopped'), letGo.then(() => 'let go')]);
    assert.equal(first, 'stopped');
    idle.destroy();
    await other.server.stop();
  });

  it('closes what does not finish within its grace', async () => {
    const { server, started } = await startSlow();
    const inFlight = query(server.url, secret, '{ slow }');
    await started;
    await Promise.all([assert.rejects(inFlight), server.stop(50)]);
  });

  it('serves any app', async () => {
    const server = await listen({ app: new Hono().get('/', (c) => c.text('Hello')), host: '127.0.0.1', port: 0 });
    assert.equal(await (await fetch(server.url)).text(), 'Hello');
    await server.stop(0);
  });

  it('answers for an app that fails as a whole, and gives nothing of it away', async () => {
    const app = Object.assign(new Hono(), { fetch: () => Promise.reject(new Error('hunter2')) });
    const server = await listen({ app, host: '127.0.0.1', port: 0 });
    const reply = await fetch(server.url);
    assert.deepEqual(
      [reply.status, reply.headers.get('cache-control'), await reply.json()],
      [
        500,
        'no-store',
        { errors: [{ message: 'Internal server error', extensions: { code: 'INTERNAL_SERVER_ERROR' } }] },
      ],
    );
    await server.stop(0);
  });

  it('serves another app from the next request on, and finishes those in flight with the previous one', async () => {
    const { server, started, answer } = await startSlow();
    const inFlight = connectTo(server.url, '{ slow }');
    await started;
    const kept = connectTo(server.url, '{ online }');
    assert.match(String((await once(kept, 'data'))[0]), /"online":true/);
    const { log, lines } = collectingLog();
    const next = await createApp({ keys: open.keys, log, introspection: 'off' });
    server.replaceApp(next);
    const asked = rawPost(
      [`Authorization: Bearer ${secret}`, 'Content-Type: application/json'],
      '{"query":"{ __schema { description } }"}',
    );
    kept.write(asked);
    assert.match(String((await once(kept, 'data'))[0]), /INTROSPECTION_OFF/);
    assert.equal((await query(server.url, 'svc_unknown', '{ online }')).status, 401);
    assert.equal(lines.length, 1, 'it is the next one that logs');
    answer(1);
    assert.match(String((await once(inFlight, 'data'))[0]), /\{"data":\{"slow":1\}\}$/);
    server.replaceApp(new Hono().get('/', (c) => c.text('Hello')));
    assert.equal(await (await fetch(server.url)).text(), 'Hello');
    for (const socket of [inFlight, kept]) socket.destroy();
    await server.stop();
  });

  it('logs what the previous app has only counted when another one takes its place', async () => {
    const { log, lines } = collectingLog();
    const server = await listen({ app: await createApp({ keys: open.keys, log }), host: '127.0.0.1', port: 0 });
    for (let time = 0; time < 3; time += 1) await query(server.url, 'svc_unknown', '{ online }');
    assert.equal(lines.length, 1);
    server.replaceApp(new Hono());
    assert.deepEqual((lines[1]!.fields as { count: number }).count, 2);
    await server.stop();
  });

  it('keeps connections for 75 seconds, or for the configured time', async () => {
    const app = new Hono().get('/', (c) => c.text('Hello'));
    for (const [told, header] of [
      [{}, 'timeout=75'],
      [{ keepAliveMs: 90_000 }, 'timeout=90'],
    ] as const) {
      const server = await listen({ app, host: '127.0.0.1', port: 0, ...told });
      const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
      socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
      assert.match(String((await once(socket, 'data'))[0]), new RegExp(`Keep-Alive: ${header}\\r`));
      socket.destroy();
      await server.stop();
    }
  });

  it('listens on addresses of IPv6, and on both kinds at once', async () => {
    const app = new Hono().get('/', (c) => c.text('Hello'));
    const six = await listen({ app, host: '::1', port: 0 });
    assert.match(six.url, /^http:\/\/\[::1\]:\d+$/);
    assert.equal(await (await fetch(six.url)).text(), 'Hello');
    const both = await listen({ app, host: '::', port: 0 });
    const { port } = new URL(both.url);
    for (const host of ['127.0.0.1', '[::1]'])
      assert.equal(await (await fetch(`http://${host}:${port}`)).text(), 'Hello');
    await Promise.all([six.stop(), both.stop()]);
  });

  it('detects an address that is reached over a network without TLS', () => {
    for (const url of ['http://127.0.0.1:1', 'http://127.9.9.9:1', 'http://[::1]:1', 'https://192.0.2.1:1', 'unix:/a'])
      assert.equal(isInClear(url), false, url);
    for (const url of ['http://0.0.0.0:1', 'http://[::]:1', 'http://192.0.2.1:1', 'http://[2001:db8::1]:1'])
      assert.equal(isInClear(url), true, url);
  });

  it('says why it cannot listen', async () => {
    const app = await createApp({ keys: open.keys });
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as { port: number };
    await assert.rejects(listen({ app, host: '127.0.0.1', port }), {
      code: 'LISTEN_FAILED',
      message: `The server cannot start: port ${port} is taken. Choose another with --port, or 0 for a free one.`,
    });
    other.close();
    await assert.rejects(listen({ app, host: '203.0.113.1', port: 0 }), {
      code: 'LISTEN_FAILED',
      message: /"203\.0\.113\.1" is not an address of this machine/,
    });
  });
});
