import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { Hono } from 'hono';
import { createApp } from '../../src/service/create-app.ts';
import { listen, type RunningServer } from '../../src/http/listen.ts';
import { connectTo, readToEnd } from '../support/client.ts';
import { createPrincipal, openTestKeys, type TestKeys } from '../support/keys.ts';
import { rawPost } from '../support/raw-http.ts';

const BODY = '{"query":"{ online }"}';
const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';

describe('a client that waits before it sends its body', () => {
  let test: TestKeys;
  let secret: string;
  const servers: RunningServer[] = [];

  before(async () => {
    test = await openTestKeys();
    ({ secret } = await createPrincipal(test.keys, { name: 'Guest', roles: ['GUEST'] }));
    const app = await createApp({ keys: test.keys });
    // Behind another middleware, Hono handles the request.
    const outer = new Hono().use(async (_, next) => next()).mount('/', app.fetch);
    for (const served of [app, outer]) servers.push(await listen({ app: served, host: '127.0.0.1', port: 0 }));
  });
  after(async () => {
    await Promise.all(servers.map((server) => server.stop(0)));
    await test.store.close();
  });

  const json = () => [`Authorization: Bearer ${secret}`, 'Content-Type: application/json'];
  const headOf = (headers: readonly string[], length = BODY.length) =>
    rawPost(['Expect: 100-continue', ...headers], '', length);
  const next = async (socket: Socket) => String(((await once(socket, 'data')) as [Buffer])[0]);

  it('gets 100 Continue, and its connection is kept', async () => {
    for (const { url } of servers) {
      const socket = await connectTo(url);
      for (let time = 0; time < 3; time += 1) {
        socket.write(headOf(json()));
        assert.equal(await next(socket), CONTINUE);
        socket.write(BODY);
        assert.match(await next(socket), /^HTTP\/1\.1 200 OK\r\n[^]*\r\nConnection: keep-alive\r\n[^]*"online":true/);
      }
      socket.destroy();
    }
  });

  it('gets its refusal instead, and sends nothing', async () => {
    const refused: [status: number, headers: string[], length?: number][] = [
      [401, []],
      [401, ['Authorization: Bearer svc_unknown']],
      [400, ['Authorization: Bearer a, Bearer b']],
      [415, [`Authorization: Bearer ${secret}`, 'Content-Type: text/plain']],
      [413, json(), 2_000_000],
    ];
    for (const [status, headers, length] of refused) {
      const [socket, other] = await Promise.all(servers.map(({ url }) => connectTo(url)));
      socket!.write(headOf(headers, length));
      const text = await readToEnd(socket!);
      assert.match(text, new RegExp(`^HTTP/1\\.1 ${status} [^]*\\r\\nConnection: close\\r\\n`, 'i'));
      assert.doesNotMatch(text, /100 Continue/);
      // Behind another middleware, Hono can start to read before it is known that the body is unwanted.
      other!.write(headOf(headers, length));
      let answer = await next(other!);
      if (answer === CONTINUE) answer = await next(other!);
      assert.match(answer.replace(CONTINUE, ''), new RegExp(`^HTTP/1\\.1 ${status} `));
      other!.destroy();
    }
  });

  it('is answered, too, if it does not wait, or if its body is not read', async () => {
    for (const { url } of servers) {
      const socket = await connectTo(url);
      socket.end(Buffer.concat([headOf(json()), Buffer.from(BODY)]));
      assert.match(await readToEnd(socket), /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK[^]*"online":true/);
      const elsewhere = await connectTo(url);
      elsewhere.write(headOf(json()).toString().replace('/graphql', '/elsewhere'));
      assert.match(await readToEnd(elsewhere), /^HTTP\/1\.1 404 /);
    }
  });
});
