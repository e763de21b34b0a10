import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text as readText } from 'node:stream/consumers';
import { connectRaw, type GuardedService, startGuarded } from '../../support/guard.ts';
import { until } from '../../support/until.ts';

describe('the body of a request', () => {
  let service: GuardedService;
  /** The requests that the service has got. */
  const arrived: IncomingMessage[] = [];
  before(async () => {
    service = await startGuarded(async (incoming, outgoing) => {
      arrived.push(incoming);
      if (incoming.url === '/early') return void outgoing.writeHead(413).end('too large');
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

  /** What the service says that it has got. */
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
    const trailers = ['X-Sum: 1', 'X-Auth-Roles: ADMIN', 'x_auth_roles: ADMIN', 'X-Forwarded-For: 192.0.2.1'];
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

    it('is not sent with a key that is refused, and the service hears nothing of it', async () => {
      const raw = connectRaw(service.url);
      raw.request(...lines('/'));
      await raw.closed();
      assert.match(raw.received, /^HTTP\/1\.1 401 [^]*\r\nConnection: close\r\n/);
      assert.equal(arrived.length, 0);
    });
  });

  describe('with a key that is refused', () => {
    it('is not waited for, however large it is to be, and the service hears nothing of it', async () => {
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
