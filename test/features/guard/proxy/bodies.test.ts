import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { text as readText } from 'node:stream/consumers';
import { OPERATOR } from '../../../../src/keys/authorization/principal.ts';
import { type GuardedService, PERMISSION, startGuarded } from '../support/guard.ts';
import { connectRaw } from '../../../support/raw-connection.ts';
import { authenticate, createChild, LOSSES } from '../../../support/keys.ts';
import { until } from '../../../support/until.ts';

describe('the body of a request', () => {
  let service: GuardedService;
  /** The requests that the service received. */
  const arrived: IncomingMessage[] = [];
  before(async () => {
    service = await startGuarded(async (incoming, outgoing) => {
      arrived.push(incoming);
      if (incoming.url === '/early') return void outgoing.writeHead(413).end('too large');
      if (incoming.url === '/echo') return void incoming.on('error', () => {}).pipe(outgoing.writeHead(200));
      if (incoming.url === '/late') return undefined;
      const body = await readText(incoming);
      outgoing.end(JSON.stringify({ body, headers: incoming.rawHeaders, trailers: incoming.rawTrailers }));
      return undefined;
    });
    service.upstream.on('checkContinue', (incoming: IncomingMessage, outgoing: ServerResponse) => {
      if (incoming.url === '/unwanted') outgoing.writeHead(417).end();
      else {
        outgoing.writeContinue();
        service.upstream.emit('request', incoming, outgoing);
      }
    });
  });
  after(() => service.stop());
  beforeEach(() => {
    arrived.length = 0;
  });

  /** The service's report about a body. */
  const seenIn = (text: string) =>
    JSON.parse(text.slice(text.lastIndexOf('\r\n\r\n'))) as { body: string; headers: string[]; trailers: string[] };

  const send = async (lines: readonly string[], body: string) => {
    const raw = connectRaw(service.url);
    raw.request(...lines);
    raw.send(body);
    const text = await raw.receives(/\}$/);
    raw.socket.destroy();
    return seenIn(text);
  };

  it('is passed on by its length', async () => {
    const { body, headers } = await send(
      ['POST / HTTP/1.1', 'Host: a', service.authorization, 'Content-Length: 3'],
      'abc',
    );
    assert.deepEqual([body, headers[headers.indexOf('Content-Length') + 1]], ['abc', '3']);
    assert.ok(!headers.includes('Transfer-Encoding'));
  });

  for (const method of ['POST', 'GET', 'DELETE']) {
    it(`is passed on in chunks, with ${method}`, async () => {
      const lines = [`${method} / HTTP/1.1`, 'Host: a', service.authorization, 'Transfer-Encoding: chunked'];
      const { body, headers } = await send(lines, '3\r\nabc\r\n2;extension=1\r\nde\r\n0\r\n\r\n');
      assert.deepEqual([body, headers[headers.indexOf('Transfer-Encoding') + 1]], ['abcde', 'chunked']);
      assert.ok(!headers.includes('Content-Length'));
    });
  }

  it('that is not there is not there for the service', async () => {
    const { headers } = await send(['GET / HTTP/1.1', 'Host: a', service.authorization], '');
    assert.ok(!headers.includes('Content-Length') && !headers.includes('Transfer-Encoding'));
  });

  it('that a POST does not have is empty', async () => {
    const { body, headers } = await send(['POST / HTTP/1.1', 'Host: a', service.authorization], '');
    assert.deepEqual([body, headers[headers.indexOf('Content-Length') + 1]], ['', '0']);
  });

  it('is followed by its trailers, without those that only we may set', async () => {
    const lines = ['POST / HTTP/1.1', 'Host: a', service.authorization, 'Transfer-Encoding: chunked', 'Trailer: X-Sum'];
    const trailers = [
      'X-Sum: 1',
      'X-Auth-Roles: ADMIN',
      'x_auth_roles: ADMIN',
      'X-Forwarded-For: 192.0.2.1',
      'Remote-User: root',
    ];
    const more = ['Host: b', service.authorization, 'Connection: close', 'X-Sum: 2'];
    const seen = await send(lines, `3\r\nabc\r\n0\r\n${[...trailers, ...more].join('\r\n')}\r\n\r\n`);
    assert.deepEqual(seen.trailers, ['X-Sum', '1', 'X-Sum', '2']);
    assert.equal(seen.headers[seen.headers.indexOf('Trailer') + 1], 'X-Sum');
  });

  it('arrives while it is sent', async () => {
    const raw = connectRaw(service.url);
    raw.request('POST / HTTP/1.1', 'Host: a', service.authorization, 'Transfer-Encoding: chunked');
    await until(() => arrived.length === 1);
    raw.send('3\r\nabc\r\n0\r\n\r\n');
    assert.equal(seenIn(await raw.receives(/\}$/)).body, 'abc');
    raw.socket.destroy();
  });

  it('is dropped if the service answers without reading it', async () => {
    const raw = connectRaw(service.url);
    raw.request('POST /early HTTP/1.1', 'Host: a', service.authorization, 'Content-Length: 6');
    await raw.receives(/^HTTP\/1\.1 413 [^]*too large/);
    raw.send('abcdef');
    raw.request('GET / HTTP/1.1', 'Host: a', service.authorization);
    await raw.receives(/HTTP\/1\.1 200 [^]*\}$/);
    raw.socket.destroy();
  });

  for (const framing of ['Transfer-Encoding: chunked', 'Content-Length: 100000000'])
    it(`is dropped if the service answers and closes while it arrives, and its answer arrives (${framing})`, async () => {
      const answer = 'HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 9\r\n\r\ntoo large';
      // It resets the connection instead of reading what has arrived.
      const closing = createServer((socket) => {
        socket.once('data', () => socket.pause().write(answer, () => socket.destroy())).on('error', () => {});
      });
      await once(closing.listen(0, '127.0.0.1'), 'listening');
      const { port } = closing.address() as AddressInfo;
      const url = await service.beside({ upstream: { protocol: 'http:', host: '127.0.0.1', port } });
      for (let round = 0; round < 20; round += 1) {
        const raw = connectRaw(url);
        raw.request('POST / HTTP/1.1', 'Host: a', service.authorization, framing);
        const part = 'a'.repeat(0x10000);
        const text = framing.startsWith('T') ? `10000\r\n${part}\r\n` : part;
        const feed = () => {
          while (!raw.isClosed && !raw.received && raw.socket.write(text));
        };
        raw.socket.on('drain', feed);
        feed();
        assert.match(await raw.receives('too large'), /^HTTP\/1\.1 413 /);
        raw.socket.destroy();
      }
      closing.close();
    });

  describe('is passed on no further once its key', () => {
    /** The body of the next request at the service, and whether it was complete. */
    const takenByService = async () => {
      await until(() => arrived.length === 1);
      const incoming = arrived[0]!.on('error', () => {});
      const taken = {
        text: '',
        ended: new Promise((resolve) => incoming.once('close', () => resolve(incoming.complete))),
      };
      incoming.on('data', (chunk: Buffer) => (taken.text += chunk.toString()));
      return taken;
    };
    const REFUSED = {
      401: /^HTTP\/1\.1 401 [^]*error="invalid_token"/,
      403: /^HTTP\/1\.1 403 [^]*(insufficient_scope|not be used from this address)/,
    };
    const lengths = { 'in chunks': 'Transfer-Encoding: chunked', 'by its length': 'Content-Length: 10' };
    /** The same five characters. */
    const parts = { 'in chunks': ['5\r\nfirst\r\n', '5\r\nafter\r\n0\r\n\r\n'], 'by its length': ['first', 'after'] };
    for (const framing of ['in chunks', 'by its length'] as const)
      for (const [loss, { lose, refused }] of Object.entries(LOSSES))
        it(`has lost what it needs: ${loss}, of a body ${framing}`, async () => {
          const key = await createChild(service.keys, { permissions: [PERMISSION] });
          const raw = connectRaw(service.url);
          raw.request('POST /late HTTP/1.1', 'Host: a', `Authorization: Bearer ${key.secret}`, lengths[framing]);
          raw.send(parts[framing][0]!);
          const taken = await takenByService();
          await until(() => taken.text === 'first');
          await lose(service, key);
          // Another client uses the key, so that its current state is cached.
          await authenticate(service.keys, key.secret);
          raw.send(parts[framing][1]!);
          await raw.receives(REFUSED[refused]);
          assert.deepEqual([await taken.ended, taken.text], [false, 'first']);
          raw.socket.destroy();
        });

    it('is deleted before the body starts, after a 100 Continue', async () => {
      const key = await createChild(service.keys, { permissions: [PERMISSION] });
      const raw = connectRaw(service.url);
      const line = `Authorization: Bearer ${key.secret}`;
      raw.request('POST /late HTTP/1.1', 'Host: a', line, 'Content-Length: 5', 'Expect: 100-continue');
      await raw.receives('HTTP/1.1 100 ');
      await service.keys.delete([key.id], OPERATOR);
      const taken = await takenByService();
      raw.send('after');
      await raw.receives('HTTP/1.1 401 ');
      assert.deepEqual([await taken.ended, taken.text], [false, '']);
    });

    it('is deleted, where the answer has begun: the connection closes', async () => {
      const key = await createChild(service.keys, { permissions: [PERMISSION] });
      const raw = connectRaw(service.url);
      const line = `Authorization: Bearer ${key.secret}`;
      raw.request('POST /echo HTTP/1.1', 'Host: a', line, 'Transfer-Encoding: chunked');
      raw.send('5\r\nfirst\r\n');
      await raw.receives('first');
      await service.keys.delete([key.id], OPERATOR);
      raw.send('5\r\nafter\r\n0\r\n\r\n');
      await raw.closed();
      assert.ok(!raw.received.includes('after'), raw.received);
    });

    it('is deleted, even if nothing more comes: its client gets an answer, and both connections close', async () => {
      const key = await createChild(service.keys, { permissions: [PERMISSION] });
      const raw = connectRaw(service.url);
      raw.request('POST /late HTTP/1.1', 'Host: a', `Authorization: Bearer ${key.secret}`, 'Content-Length: 10');
      raw.send('first');
      const taken = await takenByService();
      await until(() => taken.text === 'first');
      await service.keys.delete([key.id], OPERATOR);
      await raw.receives(REFUSED[401]);
      await raw.closed();
      assert.deepEqual([await taken.ended, taken.text], [false, 'first']);
    });
  });

  describe('for which the client waits for 100 Continue', () => {
    const lines = (path: string, ...more: string[]) => [
      `POST ${path} HTTP/1.1`,
      'Host: a',
      'Expect: 100-continue',
      'Content-Length: 3',
      ...more,
    ];

    it('is sent once the service wants it', async () => {
      const raw = connectRaw(service.url);
      raw.request(...lines('/', service.authorization));
      await raw.receives('HTTP/1.1 100 Continue\r\n\r\n');
      raw.send('abc');
      assert.equal(seenIn(await raw.receives(/\}$/)).body, 'abc');
      raw.socket.destroy();
    });

    it('is not sent if the service does not want it, and the connection closes: where it ends is not clear', async () => {
      const raw = connectRaw(service.url);
      raw.request(...lines('/unwanted', service.authorization));
      await raw.closed();
      assert.match(raw.received, /^HTTP\/1\.1 417 [^]*\r\nConnection: close\r\n/);
    });

    it('is not sent with a key that is refused, and the service gets nothing of it', async () => {
      const raw = connectRaw(service.url);
      raw.request(...lines('/'));
      await raw.closed();
      assert.match(raw.received, /^HTTP\/1\.1 401 [^]*\r\nConnection: close\r\n/);
      assert.equal(arrived.length, 0);
    });
  });

  describe('with a key that is refused', () => {
    it('is not waited for, however large it is to be, and the service gets nothing of it', async () => {
      for (const framing of ['Content-Length: 100000000000', 'Transfer-Encoding: chunked']) {
        const raw = connectRaw(service.url);
        raw.request('POST / HTTP/1.1', 'Host: a', 'Authorization: Bearer wrong', framing);
        await raw.closed();
        assert.match(raw.received, /^HTTP\/1\.1 401 [^]*\r\nConnection: close\r\n[^]*"UNAUTHENTICATED"/);
      }
      assert.equal(arrived.length, 0);
    });

    it('is dropped if it is short, and the connection is kept', async () => {
      const raw = connectRaw(service.url);
      raw.request('POST / HTTP/1.1', 'Host: a', 'Content-Length: 3');
      await raw.receives(/^HTTP\/1\.1 401 [^]*\}$/);
      raw.send('abc');
      raw.request('GET / HTTP/1.1', 'Host: a', service.authorization);
      await raw.receives(/HTTP\/1\.1 200 [^]*\}$/);
      raw.socket.destroy();
    });

    it('may be on its way: its client still gets to read the answer', async () => {
      const raw = connectRaw(service.url);
      raw.request('POST / HTTP/1.1', 'Host: a', 'Content-Length: 100000000');
      const chunk = 'a'.repeat(64 * 1024);
      const feed = () => {
        while (!raw.isClosed && raw.socket.write(chunk));
      };
      raw.socket.on('drain', feed);
      feed();
      await raw.receives(/^HTTP\/1\.1 401 [^]*\}$/);
      raw.socket.destroy();
      await once(raw.socket, 'close');
    });
  });
});
