import assert from 'node:assert/strict';
import { createPrincipal, openTestKeys, type TestKeys } from '../support/keys.ts';
import { abandon, exchange } from '../support/raw.ts';
import { query, startServer, type TestServer } from '../support/server.ts';

describe('requests that are no GraphQL', () => {
  let open: TestKeys;
  let server: TestServer;
  let secret: string;
  before(async () => {
    open = await openTestKeys();
    ({ secret } = await createPrincipal(open.keys, { name: 'CI deploy', roles: ['GUEST'] }));
    server = await startServer(open.keys);
  });
  afterEach('the server still answers', async () => {
    assert.deepEqual((await query(server.url, secret, '{ online }')).body, { data: { online: true } });
  });
  after(async () => {
    await server.stop();
    await open.store.close();
  });

  const send = async (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}, path = '/graphql') => {
    const response = await fetch(server.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', ...headers },
      body,
    });
    const { errors } = (await response.json()) as { errors?: { message: string; extensions: { code: string } }[] };
    return { status: response.status, code: errors?.[0]?.extensions.code, message: errors?.[0]?.message };
  };

  const BAD: readonly (readonly [what: string, body: string | Uint8Array<ArrayBuffer>, message: RegExp])[] = [
    ['an empty body', '', /empty/],
    ['no JSON', '{"query":', /not valid JSON/],
    ['an array', '[{"query":"{ online }"}]', /must be a JSON object/],
    ['a number', '1', /must be a JSON object/],
    ['null', 'null', /must be a JSON object/],
    ['no query', '{}', /"query" must be a string/],
    ['a query that is no string', '{"query":{}}', /"query" must be a string/],
    ['variables that are no object', '{"query":"{ online }","variables":[1]}', /"variables" must be an object/],
    ['an operation name that is no string', '{"query":"{ online }","operationName":1}', /"operationName" must be a string/],
    ['extensions that are no object', '{"query":"{ online }","extensions":"x"}', /"extensions" must be an object/],
    ['bytes that are no UTF-8', new Uint8Array([0x7b, 0xff, 0xfe, 0x7d]), /not valid UTF-8/],
    ['100,000 nested arrays', `{"query":"{ online }","variables":{"x":${'['.repeat(100_000)}${']'.repeat(100_000)}}}`, /nests deeper/],
  ];
  for (const [what, body, message] of BAD) {
    it(`refuses ${what}`, async () => {
      const reply = await send(body);
      assert.deepEqual({ status: reply.status, code: reply.code }, { status: 400, code: 'BAD_REQUEST' });
      assert.match(reply.message!, message);
    });
  }

  it('refuses 10 MB, with a key and without', async () => {
    const body = JSON.stringify({ query: '{ online }', variables: { x: 'x'.repeat(10_000_000) } });
    assert.deepEqual(await send(body).then(({ status, code }) => ({ status, code })), { status: 413, code: 'BODY_TOO_LARGE' });
    const chunked = `POST /graphql HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secret}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${`10000\r\n${'x'.repeat(65_536)}\r\n`.repeat(32)}`;
    assert.match(await exchange(server.url, chunked, 'BODY_TOO_LARGE'), /^HTTP\/1\.1 413 /);
    const without = `POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    assert.match(await exchange(server.url, without, 'UNAUTHENTICATED'), /^HTTP\/1\.1 401 /);
  });

  it('survives a body that is cut off', async () => {
    await abandon(
      server.url,
      `POST /graphql HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secret}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"query":`,
    );
  });

  it('refuses other media types, charsets and encodings', async () => {
    const body = '{"query":"{ online }"}';
    const refused: Record<string, string>[] = [
      { 'content-type': 'text/plain' },
      { 'content-type': 'application/graphql' },
      { 'content-type': 'application/x-www-form-urlencoded' },
      { 'content-type': 'multipart/form-data; boundary=x' },
      { 'content-type': '' },
      { 'content-type': 'application/json; charset=latin1' },
      { 'content-encoding': 'gzip' },
    ];
    for (const headers of refused) {
      assert.deepEqual(
        await send(body, headers).then(({ status, code }) => ({ status, code })),
        { status: 415, code: 'UNSUPPORTED_MEDIA_TYPE' },
        JSON.stringify(headers),
      );
    }
    for (const type of ['application/json; charset=utf-8', 'APPLICATION/JSON;charset="UTF-8"'])
      assert.equal((await send(body, { 'content-type': type })).status, 200);
    assert.deepEqual(await send(body, { accept: 'text/html' }).then(({ status, code }) => ({ status, code })), {
      status: 406,
      code: 'NOT_ACCEPTABLE',
    });
  });

  it('takes nothing from the address', async () => {
    const inAddress = `/graphql?query=${encodeURIComponent('{ info { version } }')}&operationName=x&variables=no`;
    const response = await send('{"query":"{ online }"}', {}, inAddress);
    assert.deepEqual(response, { status: 200, code: undefined, message: undefined });
    assert.equal((await send('{}', {}, inAddress)).status, 400);
  });

  it('answers GET with 405, and other addresses with 404 as JSON', async () => {
    const get = await fetch(`${server.url}/graphql?query={online}`, { headers: { authorization: `Bearer ${secret}` } });
    assert.deepEqual([get.status, get.headers.get('allow')], [405, 'POST']);
    await get.body?.cancel();
    for (const path of ['/', '/graphql/', '/admin', '/healthz/x']) assert.deepEqual((await send('', {}, path)).code, 'NOT_FOUND', path);
  });

  it('says that it is alive and ready to anybody', async () => {
    for (const path of ['/healthz', '/readyz']) assert.deepEqual(await (await fetch(server.url + path)).json(), { status: 'ok' });
  });
});
