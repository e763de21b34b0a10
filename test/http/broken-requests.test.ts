import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import type { Server } from 'node:http';
import { connect } from 'node:net';
import { Hono } from 'hono';
import { listen } from '../../src/http/listen.ts';
import { sendRaw } from '../support/raw-http.ts';
import { startTestService, type TestService } from '../support/server.ts';

const head = (first: string, ...headers: string[]) => [first, ...headers, '', ''].join('\r\n');

describe('a request that is not valid HTTP', () => {
  let test: TestService;

  before(async () => {
    test = await startTestService();
  });
  after(() => test.stop());
  afterEach('the server still answers', async () => {
    assert.equal((await fetch(`${test.url}/healthz`)).status, 200);
  });

  const invalid = [400, 'BAD_REQUEST', 'The request is not valid HTTP.'] as const;
  const nowhere = [400, 'BAD_REQUEST', 'The Host or target is invalid.'] as const;
  const rows: [what: string, bytes: string, reply: readonly [status: number, code: string, message: string]][] = [
    ['of other text', head('hello'), invalid],
    ['with a NUL in a header', head('GET /graphql HTTP/1.1', 'Host: x', 'Authorization: Bearer a\0b'), invalid],
    ['with a bad length', head('POST /graphql HTTP/1.1', 'Host: x', 'Content-Length: x'), invalid],
    ['with two lengths', head('POST /graphql HTTP/1.1', 'Host: x', 'Content-Length: 1', 'Content-Length: 2'), invalid],
    [
      'with a length and in chunks',
      head('POST /graphql HTTP/1.1', 'Host: x', 'Content-Length: 5', 'Transfer-Encoding: chunked'),
      invalid,
    ],
    [
      'with headers larger than Node takes',
      head('POST /graphql HTTP/1.1', 'Host: x', `Authorization: Bearer ${'a'.repeat(20_000)}`),
      [431, 'HEADERS_TOO_LARGE', 'The headers are too large.'],
    ],
    [
      'with an expectation that is unknown',
      head('POST /graphql HTTP/1.1', 'Host: x', 'Content-Length: 5', 'Expect: a miracle'),
      [417, 'EXPECTATION_FAILED', 'Only "Expect: 100-continue" is supported.'],
    ],
    ['without a Host', head('GET /graphql HTTP/1.1'), nowhere],
    ['with two Hosts', head('GET /healthz HTTP/1.1', 'Host: x', 'host: y'), nowhere],
    ['with two Hosts and a query', head('POST /graphql HTTP/1.1', 'Host: x', 'Host: x', 'Content-Length: 0'), nowhere],
    [
      'with a body that is encoded for its way',
      head('POST /graphql HTTP/1.1', 'Host: x', 'Transfer-Encoding: gzip, chunked'),
      [400, 'BAD_REQUEST', 'Only "Transfer-Encoding: chunked" is supported.'],
    ],
    [
      'by GET with a body that is encoded for its way',
      head('GET /graphql?query={online} HTTP/1.1', 'Host: x', 'Transfer-Encoding: gzip, chunked'),
      [400, 'BAD_REQUEST', 'Only "Transfer-Encoding: chunked" is supported.'],
    ],
    ['with a bad Host', head('GET /graphql HTTP/1.1', 'Host: a b'), nowhere],
    ['of a path that a proxy may take for another one', head('GET /.svc-api/../healthz HTTP/1.1', 'Host: x'), nowhere],
    ['of such a path, encoded', head('POST /x/%2E./graphql?query HTTP/1.1', 'Host: x'), nowhere],
    ['with a bad address', head('GET http://[ HTTP/1.1', 'Host: x'), nowhere],
    ['with a backslash in its path', head('GET /a\\b HTTP/1.1', 'Host: x'), nowhere],
    ['for the server as a whole', head('OPTIONS * HTTP/1.1', 'Host: x'), nowhere],
    [
      'for another path',
      head('GET /etc/passwd HTTP/1.1', 'Host: x'),
      [404, 'NOT_FOUND', 'There is nothing at this address. GraphQL is at POST /graphql.'],
    ],
  ];
  for (const [what, bytes, [status, code, message]] of rows) {
    it(`${what} gets ${status} in the form of all other errors`, async () => {
      const reply = await sendRaw(test.url, bytes);
      assert.deepEqual(
        [reply.status, JSON.parse(reply.body)],
        [status, { errors: [{ message, extensions: { code } }] }],
      );
      assert.deepEqual(
        ['content-type', 'cache-control', 'x-content-type-options'].map((name) => reply.headers.get(name)),
        ['application/json', 'no-store', 'nosniff'],
      );
    });
  }

  it('is not waited for longer than 30 seconds, its headers not longer than 10, and a further one not longer than 75', async () => {
    let found: Server | undefined;
    const look = (message: unknown) => {
      found = (message as { server: Server }).server;
    };
    subscribe('http.server.request.start', look);
    await fetch(`${test.url}/healthz`);
    unsubscribe('http.server.request.start', look);
    const { headersTimeout, requestTimeout, keepAliveTimeout } = found!;
    assert.deepEqual(
      { headersTimeout, requestTimeout, keepAliveTimeout },
      { headersTimeout: 10_000, requestTimeout: 30_000, keepAliveTimeout: 75_000 },
    );
  });
});

describe('invalid HTTP after a request whose answer has begun', () => {
  it('ends the connection, and writes nothing into that answer', async () => {
    const app = new Hono().get('/', () => {
      const body = new ReadableStream({ start: (controller) => controller.enqueue(Buffer.from('aaaaa')) });
      return new Response(body, { headers: { 'content-length': '10' } });
    });
    const server = await listen({ app, host: '127.0.0.1', port: 0 });
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
    let received = '';
    const begun = new Promise<void>((resolve) => {
      socket.setEncoding('utf8').on('data', (text: string) => {
        received += text;
        if (received.endsWith('aaaaa')) resolve();
      });
    });
    socket.on('error', () => {}).write(head('GET / HTTP/1.1', 'Host: x'));
    await begun;
    socket.write('\0\0\0 no HTTP\r\n\r\n');
    await once(socket, 'close');
    assert.match(received, /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\naaaaa$/);
    await server.stop();
  });
});
