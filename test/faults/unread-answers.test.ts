import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import type { HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { Hono } from 'hono';
import { listen, type RunningServer } from '../../src/http/listen.ts';
import type { ServerLimits } from '../../src/http/server.ts';
import { closed, connectTo, readToEnd } from '../support/client.ts';
import { until } from '../support/until.ts';

const MB = 1024 * 1024;
/** More than the system buffers for a reader that does not read. */
const ANSWER = 'x'.repeat(16 * MB);
/** In milliseconds; longer than a test can take. */
const FOREVER = 600_000;

describe('an answer that is not read', () => {
  let server: RunningServer;
  const clients: Socket[] = [];
  /** The server's sockets, in the order of their first requests. */
  const ends = new Set<Socket>();
  const notice = (message: unknown) => void ends.add((message as { socket: Socket }).socket);
  before(() => subscribe('http.server.request.start', notice));
  after(() => unsubscribe('http.server.request.start', notice));
  afterEach(async () => {
    for (const client of clients.splice(0)) client.destroy();
    ends.clear();
    await server.stop(0);
  });

  const start = async (limits: ServerLimits) => {
    const app = new Hono<{ Bindings: HttpBindings }>()
      .get('/', (c) => c.text(ANSWER))
      .get('/letters', (c) => {
        c.env.outgoing.end('日'.repeat(4 * MB));
        return RESPONSE_ALREADY_SENT;
      })
      .get('/small', (c) => c.text('small'))
      .get('/stream', () => new Response(new ReadableStream({ pull: (to) => to.enqueue(new Uint8Array(MB)) })));
    server = await listen({ app, host: '127.0.0.1', port: 0, limits });
  };
  /** Sends requests over a new connection, and reads no answers. */
  const ask = async (path: string, times = 1) => {
    const client = await connectTo(server.url);
    clients.push(client.pause());
    client.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(times));
    const before = ends.size;
    await until(() => ends.size > before);
    return { client, end: [...ends].at(-1)! };
  };

  for (const path of ['/', '/stream'])
    it(`has its connection closed after a while: ${path}`, async () => {
      await start({ unreadMs: 200 });
      await closed((await ask(path)).end);
    });

  it('is waited for as long as it is read, and so is the next one', async () => {
    // The reader is slower than the limit in total, but its pauses are far shorter, unless the machine delays it.
    for (let unreadMs = 100; ; unreadMs *= 2) {
      await start({ unreadMs });
      const { client } = await ask('/');
      let received = 0;
      const began = Date.now();
      while (received < ANSWER.length && !client.closed) {
        received += (client.read() as Buffer | null)?.length ?? 0;
        const due = began + (1.5 * unreadMs * received) / ANSWER.length;
        await until(
          () => client.closed || (Date.now() >= due && (client.readableLength > 0 || received >= ANSWER.length)),
        );
      }
      if (received < ANSWER.length) {
        await server.stop(0);
        continue;
      }
      client.resume().write('GET /small HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
      assert.match(await readToEnd(client), /small$/);
      return;
    }
  });

  it('is the only one of its connection, however many were asked for', async () => {
    // Two together exceed the limit.
    await start({ unreadMs: FOREVER, unreadBytes: 20 * MB });
    const { client, end } = await ask('/', 3);
    for (let times = 0; times < 3; times += 1) await (await fetch(`${server.url}/small`)).text();
    assert.equal(end.closed, false);
    let received = 0;
    client.resume().on('data', (chunk: Buffer) => (received += chunk.length));
    await until(() => received > 3 * ANSWER.length);
  });

  it('counts in bytes, whatever its characters are', async () => {
    await start({ unreadMs: FOREVER, unreadBytes: 20 * MB });
    const first = await ask('/letters');
    await ask('/letters');
    await closed(first.end);
  });

  it('of one that is larger than the limits by itself is waited for', async () => {
    await start({ unreadMs: FOREVER, unreadBytes: MB });
    const { client } = await ask('/');
    let received = 0;
    client.resume().on('data', (chunk: Buffer) => (received += chunk.length));
    await until(() => received > ANSWER.length);
  });

  it('leaves nothing behind once it has been read', async () => {
    await start({ unreadMs: FOREVER, unreadBytes: 20 * MB });
    const { client, end } = await ask('/small');
    let received = 0;
    client.resume().on('data', (chunk: Buffer) => (received += chunk.length));
    const listeners = [];
    for (let time = 0; time < 3; time += 1) {
      received = 0;
      client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
      await until(() => received > ANSWER.length);
      listeners.push(end.listenerCount('close'));
    }
    assert.equal(listeners[2], listeners[0]);
    // If the closed ones still counted, there would be no room for both.
    await ask('/');
    await (await fetch(`${server.url}/small`)).text();
    assert.equal(end.closed, false);
  });

  it('makes room for others when there are too many: the one that has waited longest is given up first', async () => {
    await start({ unreadMs: FOREVER, unreadBytes: 40 * MB });
    const [first, second, third] = [await ask('/'), await ask('/'), await ask('/')];
    await closed(first.end);
    assert.deepEqual([second.end.closed, third.end.closed], [false, false]);
    assert.match(await (await fetch(`${server.url}/small`)).text(), /small/);
  });
});
