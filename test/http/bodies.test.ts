import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { gzipSync } from 'node:zlib';
import { MAX_BODY_BYTES } from '../../src/http/request-body.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { connectTo, readToEnd } from '../support/client.ts';
import { KeptConnection } from '../support/keep-alive.ts';
import { createPrincipal } from '../support/keys.ts';
import { rawPost, sendAndCut, sendRaw } from '../support/raw-http.ts';
import { query, startTestService, type TestService } from '../support/server.ts';
import { until } from '../support/until.ts';

const GOOD = '{"query":"{ online }"}';
const nested = (depth: number) => `{"query":"{ online }","variables":{"a":${'['.repeat(depth)}${']'.repeat(depth)}}}`;

describe('a body', () => {
  let test: TestService;
  let secret: string;

  before(async () => {
    test = await startTestService();
    ({ key: secret } = await test.keys.create({ name: 'Reader', roles: ['GUEST'] }, OPERATOR));
  });
  after(() => test.stop());
  afterEach('the server still answers', async () => {
    assert.deepEqual((await query(test.url, secret, '{ online }')).body, { data: { online: true } });
  });

  async function post(body: string | Buffer, headers: Record<string, string> = {}, search = '') {
    const response = await fetch(`${test.url}/graphql${search}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', ...headers },
      body: new Uint8Array(Buffer.from(body)),
    });
    const text = await response.text();
    return { status: response.status, type: response.headers.get('content-type'), body: JSON.parse(text) as unknown };
  }

  const NO_BATCHES =
    'The body is a JSON array, but batches are not supported: turn batching off in the client, and ' +
    'send each operation in a request of its own.';
  const bad: [what: string, body: string | Buffer, message: string][] = [
    ['empty', '', 'The body is empty; it must be a JSON object with a query.'],
    ['not JSON', '{ online }', 'The body is not valid JSON.'],
    ['JSON that is cut off', GOOD.slice(0, -1), 'The body is not valid JSON.'],
    ['a batch', `[${GOOD}, ${GOOD}]`, NO_BATCHES],
    ['an empty array', '[]', NO_BATCHES],
    ['a text', '"{ online }"', 'The body must be a JSON object with a query.'],
    ['null', 'null', 'The body must be a JSON object with a query.'],
    ['not UTF-8', Buffer.from('{"query":"{ online } # \u00fc"}', 'latin1'), 'The body is not valid UTF-8.'],
    ['without a query', '{}', '"query" must be a string with a GraphQL document.'],
    ['with a query that is no text', '{"query":{"online":true}}', '"query" must be a string with a GraphQL document.'],
    ['with variables in an array', '{"query":"{ online }","variables":[]}', '"variables" must be an object.'],
    ['with variables in a text', '{"query":"{ online }","variables":"{}"}', '"variables" must be an object.'],
    [
      'with an operationName that is no text',
      '{"query":"{ online }","operationName":1}',
      '"operationName" must be a string.',
    ],
    ['with extensions that are no object', '{"query":"{ online }","extensions":1}', '"extensions" must be an object.'],
    ['that nests deeply', nested(63), 'The body nests deeper than 64 levels, which is the most that is allowed.'],
    [
      'that nests very deeply',
      nested(250_000),
      'The body nests deeper than 64 levels, which is the most that is allowed.',
    ],
    [
      'of opening brackets alone',
      '['.repeat(1_000_000),
      'The body nests deeper than 64 levels, which is the most that is allowed.',
    ],
  ];
  for (const [what, body, message] of bad) {
    it(`${what} gets 400`, async () => {
      for (const accept of ['application/json', 'application/graphql-response+json']) {
        assert.deepEqual(await post(body, { accept }), {
          status: 400,
          type: `${accept}; charset=utf-8`,
          body: { errors: [{ message, extensions: { code: 'BAD_REQUEST' } }] },
        });
      }
    });
  }

  it('may nest to the limit, and hold brackets in its texts', async () => {
    assert.equal((await post(nested(62))).status, 200);
    const body = JSON.stringify({ query: '{ online }', variables: { a: `\\"${'['.repeat(100)}` } });
    assert.deepEqual((await post(body)).body, { data: { online: true } });
  });

  const types: [status: number, headers: Record<string, string>][] = [
    [200, { 'content-type': 'application/json; charset=utf-8' }],
    [200, { 'content-type': 'Application/JSON;charset="UTF-8"' }],
    [200, { 'content-encoding': 'identity' }],
    [415, { 'content-type': 'application/json; charset=latin1' }],
    [415, { 'content-type': 'application/graphql' }],
    [415, { 'content-type': 'application/x-www-form-urlencoded' }],
    [415, { 'content-type': 'multipart/form-data; boundary=x' }],
    [415, { 'content-type': 'text/plain' }],
    [415, { 'content-type': 'application/jsonx' }],
    [415, { 'content-encoding': 'gzip' }],
    [406, { accept: 'text/html' }],
    [406, { accept: 'application/json;q=0' }],
  ];
  for (const [status, headers] of types) {
    it(`gets ${status} with ${JSON.stringify(headers)}`, async () => {
      const reply = await post(headers['content-encoding'] === 'gzip' ? gzipSync(GOOD) : GOOD, headers);
      assert.equal(reply.status, status);
      const code = { 200: undefined, 406: 'NOT_ACCEPTABLE', 415: 'UNSUPPORTED_MEDIA_TYPE' }[status];
      const { errors } = reply.body as { errors?: { extensions: { code: string } }[] };
      assert.deepEqual(
        errors?.map(({ extensions }) => extensions.code),
        code && [code],
      );
    });
  }

  it('is all that counts: the query, variables and operation in the URL do not', async () => {
    const search = `?${new URLSearchParams({ query: '{ nothing }', variables: '{', operationName: 'Other', raw: '1' }).toString()}`;
    assert.deepEqual((await post(GOOD, {}, search)).body, { data: { online: true } });
    assert.equal((await post('{}', {}, `?${new URLSearchParams({ query: '{ online }' }).toString()}`)).status, 400);
  });

  it('of 10 MB gets 413, with its length said or not, and 401 without a key', async () => {
    const body = Buffer.alloc(10_000_000, ' ');
    const key = `Authorization: Bearer ${secret}`;
    const type = 'Content-Type: application/json';
    const said = await sendRaw(test.url, rawPost([key, type], body));
    const headers = ['POST /graphql HTTP/1.1', 'Host: localhost', key, type, 'Transfer-Encoding: chunked', '', ''].join(
      '\r\n',
    );
    const unsaid = await sendRaw(
      test.url,
      Buffer.concat([Buffer.from(`${headers}${body.length.toString(16)}\r\n`), body]),
    );
    for (const { status, body: text } of [said, unsaid]) {
      assert.equal(status, 413);
      const message = 'The body is larger than 1048576 bytes, which is the most that is allowed.';
      assert.deepEqual(JSON.parse(text), { errors: [{ message, extensions: { code: 'BODY_TOO_LARGE' } }] });
    }
    assert.equal((await sendRaw(test.url, rawPost([type], body))).status, 401);
  });

  describe('in chunks', () => {
    let head: string;
    before(() => {
      head = [
        'POST /graphql HTTP/1.1',
        'Host: localhost',
        `Authorization: Bearer ${secret}`,
        'Content-Type: application/json',
        'Transfer-Encoding: chunked',
        '\r\n',
      ].join('\r\n');
    });
    const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;

    it('may come in pieces, one after another on a connection', async () => {
      const connection = await KeptConnection.open(test.url);
      for (let time = 1; time <= 3; time += 1) {
        connection.send(Buffer.from(head + chunk(GOOD.slice(0, 7))));
        connection.send(Buffer.from(chunk(GOOD.slice(7)) + chunk('')));
        assert.equal(await connection.status(), 200);
      }
      connection.close();
    });

    it('that is too long gets 413 before it ends, and the next request of its connection an answer if it ends', async () => {
      const connection = await KeptConnection.open(test.url);
      connection.send(Buffer.from(head + chunk(' '.repeat(MAX_BODY_BYTES + 1))));
      assert.equal(await connection.status(), 413);
      connection.send(Buffer.from(chunk('') + head + chunk(GOOD) + chunk('')));
      assert.equal(await connection.status(), 200);
      connection.close();
    });

    it('that never ends gets 413, and then the connection ends', async () => {
      const socket = await connectTo(test.url);
      const answer = readToEnd(socket);
      socket.write(head + chunk(' '.repeat(MAX_BODY_BYTES + 1)));
      assert.match(await answer, /^HTTP\/1\.1 413 [^]*BODY_TOO_LARGE/);
    });

    for (const [what, from, to, status] of [
      ['without a valid key', /Bearer .*/, 'Bearer svc_wrong', 401],
      ['of another type', 'application/json', 'text/plain', 415],
    ] as const)
      it(`that never ends, in a request ${what}, gets ${status}, and then the connection ends`, async () => {
        const [earlier, socket] = [await connectTo(test.url), await connectTo(test.url)];
        earlier.write(head + chunk(GOOD));
        const answer = readToEnd(socket);
        socket.write(head.replace(from, to) + chunk(GOOD));
        // Before the timeout for the arrival of a request.
        const first = await Promise.race([answer, readToEnd(earlier).then(() => 'the earlier one ended')]);
        assert.match(first, new RegExp(`^HTTP/1\\.1 ${status} `));
        earlier.destroy();
      });

    it('that never ends costs no answer to a request before it on its connection', async () => {
      const slow = await startTestService({
        extensions: [
          {
            typeDefs: 'extend type Query { slow: String @requires(resource: API_KEY, action: READ_ANY) }',
            resolvers: { Query: { slow: () => setTimeout(1000, 'at last') } },
          },
        ],
      });
      const { secret: reader } = await createPrincipal(slow.keys, { name: 'Reader', roles: ['ADMIN'] });
      const own = head.replace(secret, reader);
      const socket = await connectTo(slow.url);
      const answer = readToEnd(socket);
      socket.write(own + chunk('{"query":"{ slow }"}') + chunk('') + own + chunk(' '.repeat(MAX_BODY_BYTES + 1)));
      assert.match(await answer, /^HTTP\/1\.1 200 [^]*at last[^]*HTTP\/1\.1 413 /);
      await slow.stop();
    });

    it('of the most that is allowed is read', async () => {
      const body = GOOD + ' '.repeat(MAX_BODY_BYTES - GOOD.length);
      assert.equal((await sendRaw(test.url, head + chunk(body) + chunk(''))).status, 200);
    });
  });

  it('does not stay in memory while its connection is kept', async () => {
    setFlagsFromString('--expose-gc');
    const collectGarbage = runInNewContext('gc') as () => void;
    const body = GOOD + ' '.repeat(MAX_BODY_BYTES - GOOD.length);
    const connections: KeptConnection[] = [];
    collectGarbage();
    const before = process.memoryUsage().arrayBuffers;
    for (let count = 1; count <= 20; count += 1) {
      const connection = await KeptConnection.open(test.url);
      connection.send(rawPost([`Authorization: Bearer ${secret}`, 'Content-Type: application/json'], body));
      assert.equal(await connection.status(), 200);
      connections.push(connection);
    }
    await until(() => {
      collectGarbage();
      return process.memoryUsage().arrayBuffers - before < 10 * MAX_BODY_BYTES;
    });
    for (const connection of connections) connection.close();
  });

  it('that never comes does not hold up the answer to a request without a valid key', async () => {
    for (const [headers, status] of [
      [[], 401],
      [['Authorization: Bearer x'], 401],
      [['Authorization: Basic x', 'Authorization: Basic x'], 400],
    ] as const) {
      assert.equal((await sendRaw(test.url, rawPost(headers, '', 1000))).status, status);
      const chunked = [
        'POST /graphql HTTP/1.1',
        'Host: localhost',
        ...headers,
        'Transfer-Encoding: chunked',
        '',
        '5',
        '{"que',
        '',
      ];
      assert.equal((await sendRaw(test.url, chunked.join('\r\n'))).status, status);
    }
  });

  it('that is cut off affects no other request', async () => {
    const request = rawPost(
      [`Authorization: Bearer ${secret}`, 'Content-Type: application/json'],
      GOOD.slice(0, 5),
      1000,
    );
    await Promise.all(Array.from({ length: 20 }, () => sendAndCut(test.url, request)));
    assert.equal((await sendRaw(test.url, request, { end: true })).status, 400);
  });
});
