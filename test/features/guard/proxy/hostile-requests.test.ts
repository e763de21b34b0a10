import assert from 'node:assert/strict';
import { type GuardedService, startGuarded } from '../support/guard.ts';
import { connectRaw } from '../../../support/raw-connection.ts';

describe('a hostile request', () => {
  let service: GuardedService;
  /** The targets of the requests that the service received. */
  const arrived: string[] = [];
  before(async () => {
    service = await startGuarded((incoming, outgoing) => {
      arrived.push(`${incoming.headers.host} ${incoming.url}`);
      incoming.resume().once('end', () => outgoing.end('fine'));
    });
  });
  after(() => service.stop());
  beforeEach(() => {
    arrived.length = 0;
  });

  /** Sends bytes that must not reach the service, followed by a request that could be read as part of them. */
  const refused = async (bytes: string) => {
    const raw = connectRaw(service.url);
    raw.send(bytes);
    await raw.closed();
    assert.match(raw.received, /^HTTP\/1\.1 400 [^]*"BAD_REQUEST"\}\}\]\}$/);
    assert.deepEqual(arrived, [], bytes);
  };

  const smuggled = () => `GET /smuggled HTTP/1.1\r\nHost: a\r\n${service.authorization}\r\n\r\n`;
  const head = (...lines: readonly string[]) =>
    ['POST / HTTP/1.1', 'Host: a', service.authorization, ...lines, '', ''].join('\r\n');

  describe('that could hide another one', () => {
    for (const [what, lines] of Object.entries({
      'a length and chunks': ['Content-Length: 6', 'Transfer-Encoding: chunked'],
      'chunks and a length': ['Transfer-Encoding: chunked', 'Content-Length: 6'],
      'two lengths': ['Content-Length: 0', 'Content-Length: 60'],
      'a list of lengths': ['Content-Length: 0, 60'],
      'a length with a sign': ['Content-Length: +6'],
      'a length in hexadecimal': ['Content-Length: 0x6'],
      'a coding that is not chunked': ['Transfer-Encoding: xchunked'],
      'chunked before another coding': ['Transfer-Encoding: chunked, identity'],
      'chunked twice': ['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'],
      'a coding with a space before the colon': ['Transfer-Encoding : chunked'],
      'a coding in a folded line': ['Transfer-Encoding:', ' chunked'],
      'a coding with a control character': ['Transfer-Encoding: \x0bchunked'],
      'a line that ends without a carriage return': ['X-A: 1\nTransfer-Encoding: chunked'],
      'a carriage return alone': ['X-A: 1\rTransfer-Encoding: chunked'],
      'a NUL': ['X-A: 1\0'],
      'a header without a name': [': 1'],
    })) {
      it(`is refused: it has ${what}`, () => refused(`${head(...lines)}0\r\n\r\n${smuggled()}`));
    }

    it('is refused: gzip and chunked, which we would not pass on as they are', async () => {
      await refused(`${head('Transfer-Encoding: gzip, chunked')}0\r\n\r\n${smuggled()}`);
    });

    it('is refused: chunks in HTTP/1.0', async () => {
      const text = head('Transfer-Encoding: chunked').replace('HTTP/1.1', 'HTTP/1.0');
      await refused(`${text}0\r\n\r\n${smuggled()}`);
    });

    for (const [what, body] of Object.entries({
      'a size that is none': 'x\r\n',
      'a size with a sign': '+3\r\nabc\r\n0\r\n\r\n',
      'a size that is too large': 'fffffffffffffffff\r\n',
      'a chunk that is longer than its size': '1\r\nabc\r\n0\r\n\r\n',
      'an extension that ends without a carriage return': '1;\n\r\na\r\n0\r\n\r\n',
    })) {
      it(`breaks off: it has ${what}`, async () => {
        const raw = connectRaw(service.url);
        raw.send(`${head('Transfer-Encoding: chunked')}${body}${smuggled()}`);
        await raw.closed();
        assert.ok(!arrived.some((target) => target.includes('smuggled')));
        assert.doesNotMatch(raw.received, /fine/);
      });
    }
  });

  describe('with an ambiguous destination', () => {
    for (const [what, lines] of Object.entries({
      'two Hosts': ['GET / HTTP/1.1', 'Host: a', 'host: b'],
      'no Host': ['GET / HTTP/1.1'],
      'an empty Host': ['GET / HTTP/1.1', 'Host:'],
      'a Host with a path': ['GET / HTTP/1.1', 'Host: a/b'],
      'a Host with a user': ['GET / HTTP/1.1', 'Host: a@b'],
      'two Hosts in one': ['GET / HTTP/1.1', 'Host: a, b'],
      'a Host that is not ASCII': ['GET / HTTP/1.1', 'Host: \xe4'],
      'a fragment': ['GET /a#/../b HTTP/1.1', 'Host: a'],
      'a user in its target': ['GET http://a@b/ HTTP/1.1', 'Host: a'],
      'another scheme': ['GET ftp://a/ HTTP/1.1', 'Host: a'],
      'no slash before its path': ['GET a HTTP/1.1', 'Host: a'],
      'a star, which is for OPTIONS': ['GET * HTTP/1.1', 'Host: a'],
    })) {
      it(`is refused: it has ${what}`, async () => {
        const raw = connectRaw(service.url);
        raw.request(...lines, service.authorization);
        await raw.receives(/^HTTP\/1\.1 400 [^]*"BAD_REQUEST"/);
        raw.socket.destroy();
        assert.deepEqual(arrived, []);
      });
    }
  });

  it('in absolute form goes to that target, whatever the Host (RFC 9112, section 3.2.2)', async () => {
    for (const [target, passed] of [
      ['http://b.example/x?y', 'b.example /x?y'],
      ['https://b.example:81', 'b.example:81 /'],
      ['HTTP://b?y', 'b /?y'],
    ] as const) {
      const raw = connectRaw(service.url);
      raw.request(`GET ${target} HTTP/1.1`, 'Host: a', service.authorization);
      await raw.receives('fine');
      raw.socket.destroy();
      assert.equal(arrived.pop(), passed);
    }
  });

  it('may be OPTIONS for the server as a whole', async () => {
    const raw = connectRaw(service.url);
    raw.request('OPTIONS * HTTP/1.1', 'Host: a', service.authorization);
    await raw.receives('fine');
    raw.socket.destroy();
    assert.deepEqual(arrived, ['a *']);
  });

  it('keeps the bytes of its path, whatever they are', async () => {
    const raw = connectRaw(service.url);
    raw.request('GET //a/%zz/|{}\\?" HTTP/1.1', 'Host: a', service.authorization);
    await raw.receives('fine');
    raw.socket.destroy();
    assert.deepEqual(arrived, ['a //a/%zz/|{}\\?"']);
  });

  for (const method of ['CONNECT', 'TRACE']) {
    it(`is refused: ${method}, which is for proxies that clients choose`, async () => {
      const raw = connectRaw(service.url);
      raw.request(`${method} ${method === 'CONNECT' ? 'a:80' : '/'} HTTP/1.1`, 'Host: a', service.authorization);
      await raw.receives(/^HTTP\/1\.1 405 [^]*"METHOD_NOT_ALLOWED"/);
      raw.socket.destroy();
      assert.deepEqual(arrived, []);
    });
  }
});
