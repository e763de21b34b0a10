import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { createServer as createTcpServer, type AddressInfo, type Server } from 'node:net';
import { type GuardedService, startGuarded } from '../support/guard.ts';
import { connectRaw, rawHeaders } from '../../../support/raw-connection.ts';

describe('an answer that is passed back', () => {
  let service: GuardedService;
  /** The service's handler for the next request. */
  let answer: (outgoing: ServerResponse) => void;
  before(async () => {
    service = await startGuarded((_, outgoing) => answer(outgoing));
  });
  after(() => service.stop());

  /** Sends a request, and reads until this text has arrived. */
  const get = async (
    until: string | RegExp,
    { method = 'GET', version = '1.1' }: { method?: string; version?: string } = {},
  ): Promise<string> => {
    const raw = connectRaw(service.url);
    raw.request(`${method} / HTTP/${version}`, 'Host: a', service.authorization);
    const text = await raw.receives(until);
    raw.socket.destroy();
    return text;
  };

  it('is as the service gives it: status, reason, headers in their order, with their case and duplicates', async () => {
    const lines = [
      'Content-Disposition: attachment; filename="\xc3\xa9"',
      'Location: http://elsewhere.example/',
      'Set-Cookie: a=1',
      'x-CaSe: y',
      'Set-Cookie: b=2',
      'WWW-Authenticate: Basic',
      'Date: Thu, 01 Jan 1970 00:00:00 GMT',
    ];
    answer = (outgoing) =>
      outgoing.writeHead(302, 'Somewhere', rawHeaders(...lines, 'Content-Length: 3')).end(Buffer.from('abc'));
    const text = await get('abc');
    const [head] = text.split('\r\n\r\n');
    const { 1: id } = /\r\nx-request-id: ([\da-f-]{36})\r\n/.exec(head!)!;
    assert.deepEqual(head!.split('\r\n'), [
      'HTTP/1.1 302 Somewhere',
      ...lines,
      'Content-Length: 3',
      `x-request-id: ${id}`,
      'Connection: keep-alive',
      'Keep-Alive: timeout=5',
    ]);
  });

  it("sets no cookie of svc-api's own pages", async () => {
    const cookies = [
      'svc_api_session=x',
      '__Host-svc_api_session=x; Path=/',
      ' =svc_api_form_a=x',
      '__HOST-SVC_API_a=x',
    ];
    const others = ['a=svc_api_session; Path=/', 'my_svc_api_session=1'];
    const lines = [...cookies, ...others].map((cookie) => `Set-Cookie: ${cookie}`);
    answer = (outgoing) => outgoing.writeHead(200, rawHeaders(...lines)).end('abc');
    const text = await get('abc');
    assert.deepEqual(
      Array.from(text.matchAll(/set-cookie: (.*)\r/gi), ([, cookie]) => cookie),
      others,
    );
  });

  it('does not have headers of the connection to the service', async () => {
    const headers = ['Connection', 'keep-alive, X-Named', 'X-Named', '1', 'Keep-Alive', 'timeout=99', 'X-Kept', '2'];
    answer = (outgoing) => outgoing.writeHead(200, headers).end('abc');
    const text = await get('abc');
    assert.match(text, /X-Kept: 2/);
    assert.doesNotMatch(text, /X-Named|timeout=99/);
  });

  it('keeps its chunks and its trailers, duplicates included', async () => {
    answer = (outgoing) => {
      outgoing.writeHead(200, ['Trailer', 'X-Sum']).write('abc');
      outgoing.addTrailers([
        ['X-Sum', '1'],
        ['X-Sum', '2'],
      ]);
      outgoing.end();
    };
    const text = await get('\r\n0\r\n');
    assert.match(text, /Trailer: X-Sum\r\n[^]*Transfer-Encoding: chunked\r\n/);
    assert.ok(text.endsWith('3\r\nabc\r\n0\r\nX-Sum: 1\r\nX-Sum: 2\r\n\r\n'), text);
  });

  it('has no chunks and no trailers for a client of HTTP/1.0', async () => {
    answer = (outgoing) => {
      outgoing.writeHead(200, ['Trailer', 'X-Sum']).write('abc');
      outgoing.addTrailers([['X-Sum', '1']]);
      outgoing.end();
    };
    const raw = connectRaw(service.url);
    raw.request('GET / HTTP/1.0', 'Host: a', service.authorization);
    await raw.closed();
    assert.ok(raw.received.endsWith('\r\n\r\nabc'), raw.received);
    assert.doesNotMatch(raw.received, /trailer|transfer-encoding/i);
  });

  it('to HEAD has the length of the answer to GET, and no body', async () => {
    answer = (outgoing) => outgoing.writeHead(200, { 'Content-Length': 5000 }).end();
    const raw = connectRaw(service.url);
    raw.request('HEAD / HTTP/1.1', 'Host: a', service.authorization);
    await raw.receives(/Content-Length: 5000\r\n[^]*\r\n\r\n$/);
    answer = (outgoing) => outgoing.end('next');
    raw.request('GET / HTTP/1.1', 'Host: a', service.authorization);
    await raw.receives(/\r\n\r\nHTTP\/1\.1 200 [^]*next$/);
    raw.socket.destroy();
  });

  for (const status of [204, 304]) {
    it(`with status ${status} has no body, and the connection is kept`, async () => {
      answer = (outgoing) => outgoing.writeHead(status, { ETag: '"1"' }).end();
      const raw = connectRaw(service.url);
      raw.request('GET / HTTP/1.1', 'Host: a', service.authorization);
      const text = await raw.receives(/ETag: "1"\r\n[^]*\r\n\r\n$/);
      assert.doesNotMatch(text, /transfer-encoding|content-length/i);
      answer = (outgoing) => outgoing.end('next');
      raw.request('GET / HTTP/1.1', 'Host: a', service.authorization);
      await raw.receives(/\r\n\r\nHTTP\/1\.1 200 [^]*next$/);
      raw.socket.destroy();
    });
  }

  it('may be preceded by informational ones, such as 103 with its headers as they are', async () => {
    answer = (outgoing) => {
      outgoing.writeProcessing();
      outgoing.writeEarlyHints({ link: ['</a.css>; rel=preload', '</b.css>; rel=preload'], 'X-Hint': '1' });
      outgoing.end('abc');
    };
    const text = await get(/abc$/);
    const hints = 'HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload, </b.css>; rel=preload\r\nX-Hint: 1\r\n\r\n';
    assert.ok(text.startsWith(`HTTP/1.1 102 Processing\r\n\r\n${hints}HTTP/1.1 200 OK\r\n`), text);
    assert.ok((await get(/abc$/, { version: '1.0' })).startsWith('HTTP/1.1 200 OK\r\n'), 'HTTP/1.0 has none');
  });

  it('is passed back while it arrives, as server-sent events are, from its head on', async () => {
    let events: ServerResponse | undefined;
    answer = (outgoing) => {
      events = outgoing.writeHead(200, { 'Content-Type': 'text/event-stream' });
      events.flushHeaders();
    };
    const raw = connectRaw(service.url);
    raw.request('GET / HTTP/1.1', 'Host: a', service.authorization);
    await raw.receives('\r\n\r\n');
    events!.write('data: 1\n\n');
    await raw.receives('data: 1\n\n');
    events!.write('data: 2\n\n');
    await raw.receives('data: 2\n\n');
    events!.end();
    await raw.receives('0\r\n\r\n');
    raw.socket.destroy();
  });

  describe('by a service that writes HTTP by hand', () => {
    let byHand: Server;
    let bytes: string;
    let url: string;
    before(async () => {
      byHand = createTcpServer((socket) => {
        socket.on('error', () => {});
        socket.once('data', () => socket.end(bytes, 'latin1'));
      });
      await once(byHand.listen(0, '127.0.0.1'), 'listening');
      const { port } = byHand.address() as AddressInfo;
      url = await service.beside({ upstream: { protocol: 'http:', host: '127.0.0.1', port } });
    });
    after(() => byHand.close());

    const ask = async () => {
      const raw = connectRaw(url);
      raw.request('GET / HTTP/1.1', 'Host: a', service.authorization, 'Connection: close');
      await raw.closed();
      return raw.received;
    };

    it('comes in chunks where the end of the connection is the end of the body', async () => {
      bytes = 'HTTP/1.0 200 OK\r\n\r\nabc';
      assert.match(await ask(), /\r\nTransfer-Encoding: chunked\r\n[^]*\r\n\r\n3\r\nabc\r\n0\r\n\r\n$/);
    });

    for (const [what, answered] of Object.entries({
      'both a length and chunks': 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      'two lengths': 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd',
      'a transfer coding besides chunks': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
      'a status below 100': 'HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n',
      'a protocol that nobody asked for':
        'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nabc',
      'status 101 alone': 'HTTP/1.1 101 Switching Protocols\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
      'a header with a control character': 'HTTP/1.1 200 OK\r\nX-A: \x01\r\nContent-Length: 0\r\n\r\n',
      'something else than HTTP': 'SSH-2.0-OpenSSH_9.2\r\n',
      nothing: '',
      'a part of a head': 'HTTP/1.1 200 OK\r\nX-A',
      'headers without end': `HTTP/1.1 200 OK\r\n${`X-A: ${'a'.repeat(1000)}\r\n`.repeat(100)}`,
    })) {
      it(`is 502 if it has ${what}`, async () => {
        bytes = answered;
        const text = await ask();
        assert.match(text, /^HTTP\/1\.1 502 Bad Gateway\r\n/);
        assert.match(text, /\r\n\r\n\{"errors":\[\{"message":"[^"]+","extensions":\{"code":"BAD_GATEWAY"\}\}\]\}$/);
      });
    }

    it('has a Content-Disposition as it is, which Node would decode after a Content-Length', async () => {
      const line = 'Content-Disposition: attachment; filename="\xc3\xa9"\r\n';
      bytes = `HTTP/1.1 200 OK\r\nContent-Length: 0\r\n${line}\r\n`;
      assert.ok((await ask()).includes(line));
    });

    it('has no reason that cannot be passed on, and nor have informational ones', async () => {
      bytes = 'HTTP/1.1 103 \x01\r\nX-A: 1\r\n\r\nHTTP/1.1 200 O\x01K\r\nContent-Length: 0\r\n\r\n';
      assert.match(await ask(), /^HTTP\/1\.1 103 \r\nX-A: 1\r\n\r\nHTTP\/1\.1 200 \r\n/);
    });

    it('has all its headers, however many come before', async () => {
      const many = Array.from({ length: 1100 }, (_, index) => `a: ${index}\r\n`).join('');
      bytes = `HTTP/1.1 200 OK\r\n${many}X-Last: 1\r\nContent-Length: 3\r\n\r\nabc`;
      const text = await ask();
      assert.ok(text.startsWith(`HTTP/1.1 200 OK\r\n${many}X-Last: 1\r\n`), text.slice(-200));
      assert.match(text, /\r\nContent-Length: 3\r\n[^]*\r\n\r\nabc$/);
    });

    it('may have large headers', async () => {
      const value = 'a'.repeat(40_000);
      bytes = `HTTP/1.1 200 OK\r\nX-A: ${value}\r\nContent-Length: 0\r\n\r\n`;
      assert.ok((await ask()).includes(value));
    });
  });
});
