import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectByTls } from 'node:tls';
import { Hono } from 'hono';
import { listen, type RunningServer } from '../../src/http/listen.ts';
import { pairOf, writePair } from '../support/certificates.ts';
import { closed, readToEnd } from '../support/client.ts';
import { until } from '../support/until.ts';

const PAIR = pairOf('first');
const SLOW = 'GET /slow HTTP/1.1\r\nHost: x\r\n\r\n';
const QUICK = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
/** In milliseconds; longer than a test can take. */
const FOREVER = 600_000;

for (const scheme of ['http', 'https'] as const) {
  describe(`a server that stops, by ${scheme}`, () => {
    let server: RunningServer;
    let [asked, answer] = [0, () => {}];
    const sockets: Socket[] = [];
    beforeEach(async () => {
      const answered = Promise.withResolvers<void>();
      [asked, answer] = [0, answered.resolve];
      const app = new Hono()
        .get('/', (c) => {
          asked += 1;
          return c.text('quick');
        })
        .get('/slow', async (c) => {
          asked += 1;
          await answered.promise;
          return c.text('slow');
        });
      const encrypted = scheme === 'https' && { tls: writePair(PAIR) };
      server = await listen({ app, host: '127.0.0.1', port: 0, ...encrypted });
    });
    afterEach(async () => {
      for (const socket of sockets.splice(0)) socket.destroy();
      await server.stop(0);
    });
    const open = async (): Promise<Socket> => {
      const port = Number(new URL(server.url).port);
      const socket =
        scheme === 'https'
          ? connectByTls({ port, host: '127.0.0.1', servername: 'localhost', ca: PAIR.cert })
          : connect(port, '127.0.0.1');
      sockets.push(socket);
      await once(socket, scheme === 'https' ? 'secureConnect' : 'connect');
      return socket;
    };
    /** A connection after an answered request. */
    const kept = async (): Promise<Socket> => {
      const socket = await open();
      socket.write(QUICK);
      assert.match(String((await once(socket, 'data'))[0]), /Connection: keep-alive/i);
      return socket;
    };

    it('answers a request that a kept connection still brings, and says that it is the last', async () => {
      const socket = await kept();
      const stopped = server.stop(FOREVER);
      socket.write(QUICK);
      assert.match(await readToEnd(socket), /^HTTP\/1\.1 200 OK\r\n[^]*Connection: close\r\n[^]*quick$/i);
      await stopped;
    });

    it('says with an answer that was in hand that it is the last, so that no request is sent behind it', async () => {
      const socket = await open();
      socket.write(SLOW);
      await until(() => asked === 1);
      const stopped = server.stop(FOREVER);
      const all = readToEnd(socket);
      answer();
      assert.match(await all, /^HTTP\/1\.1 200 OK\r\n[^]*Connection: close\r\n[^]*slow$/i);
      await stopped;
    });

    it('answers all pipelined requests, and closes with the last answer', async () => {
      const socket = await open();
      socket.write(SLOW + SLOW + SLOW + QUICK);
      await until(() => asked === 1);
      const stopped = server.stop(FOREVER);
      const all = readToEnd(socket);
      answer();
      const text = await all;
      assert.deepEqual(text.match(/slow|quick/g), ['slow', 'slow', 'slow', 'quick']);
      assert.deepEqual(
        Array.from(text.matchAll(/Connection: (\S+)/gi), ([, said]) => said),
        ['keep-alive', 'keep-alive', 'keep-alive', 'close'],
      );
      await stopped;
    });

    it('lets go of a kept connection that brings nothing', async () => {
      const socket = await kept();
      await Promise.all([closed(socket), server.stop(FOREVER)]);
    });

    it('accepts no connection', async () => {
      const socket = await open();
      socket.write(SLOW);
      await until(() => asked === 1);
      const stopped = server.stop(FOREVER);
      await until(() =>
        open().then(
          () => false,
          ({ code }: NodeJS.ErrnoException) => code === 'ECONNREFUSED',
        ),
      );
      answer();
      await stopped;
    });
  });
}
