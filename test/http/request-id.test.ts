import assert from 'node:assert/strict';
import { Hono } from 'hono';
import { createApp } from '../../src/service/create-app.ts';
import { listen } from '../../src/http/listen.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { openTestKeys } from '../support/keys.ts';
import { collectingLog } from '../support/log.ts';
import { rawPost, sendRaw } from '../support/raw-http.ts';
import { startServer, startTestService, type TestService } from '../support/server.ts';

const UUID = /^[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}$/;
const HEAD = ['Content-Type: application/json'];
const BODY = '{"query":"{ me { name } }"}';
const ID = 'X-Request-Id';

describe('the id of a request', () => {
  let test: TestService;
  let secret: string;

  before(async () => {
    test = await startTestService();
    ({ key: secret } = await test.keys.create({ name: 'Guest', roles: ['GUEST'] }, OPERATOR));
  });
  after(() => test.stop());

  const idOf = async (bytes: string | Buffer, url = test.url) => (await sendRaw(url, bytes)).headers.get(ID) ?? '';
  const head = (...lines: string[]) => [...lines, '', ''].join('\r\n');

  it('is on every answer: data, refusals, errors, health, and invalid requests', async () => {
    const own = (...lines: string[]) => rawPost([...HEAD, ...lines], BODY);
    const requests: Record<string, string | Buffer> = {
      'the fast path': own(`Authorization: Bearer ${secret}`),
      'an invalid key': own('Authorization: Bearer nonsense'),
      'no key': own(),
      'a malformed body': rawPost([...HEAD, `Authorization: Bearer ${secret}`], '{'),
      'a request for Hono': own(`Authorization: Bearer ${secret}`, 'Content-Encoding: identity', 'Host: x'),
      'another method': head('DELETE /graphql HTTP/1.1', 'Host: a', `Authorization: Bearer ${secret}`),
      GET: head('GET /graphql?query={online} HTTP/1.1', 'Host: a', `Authorization: Bearer ${secret}`),
      introspection: head('POST /introspect HTTP/1.1', 'Host: a', 'Content-Length: 0'),
      health: head('GET /healthz HTTP/1.1', 'Host: a'),
      readiness: head('GET /readyz HTTP/1.1', 'Host: a'),
      'health without a Host': head('GET /healthz HTTP/1.0'),
      'the page': head('GET / HTTP/1.1', 'Host: a', 'Accept: text/html'),
      consent: head('POST /oauth/token HTTP/1.1', 'Host: a', 'Content-Length: 0'),
      'nothing there': head('GET /nothing HTTP/1.1', 'Host: a'),
      'a proxy that asks': head('GET /auth/nginx HTTP/1.1', 'Host: a'),
      'an invalid Host': head('GET / HTTP/1.1', 'Host: a b'),
      'an expectation': head('GET / HTTP/1.1', 'Host: a', 'Expect: 200-ok'),
      'a body that is waited for': head(
        'POST /graphql HTTP/1.1',
        'Host: a',
        'Content-Length: 5',
        'Expect: 100-continue',
      ),
      'no HTTP': head('NONSENSE'),
      'headers that are too large': head('GET / HTTP/1.1', 'Host: a', `X: ${'x'.repeat(20_000)}`),
    };
    const ids = new Set<string>();
    for (const [what, bytes] of Object.entries(requests)) {
      const { headers } = await sendRaw(test.url, bytes);
      assert.match(headers.get(ID) ?? '', UUID, what);
      ids.add(headers.get(ID)!);
    }
    assert.equal(ids.size, Object.keys(requests).length);
  });

  it('is the one that a trusted proxy gives, if that is an id', async () => {
    const send = (value: string) =>
      idOf(rawPost([...HEAD, `${ID}: ${value}`, `Authorization: Bearer ${secret}`], BODY));
    for (const id of ['7', 'Root=1-67891233-abcdef012345678912345678', 'a/b;o=1', 'x'.repeat(128)])
      assert.equal(await send(id), id);
    const made = [
      'x'.repeat(129),
      'x'.repeat(10_000),
      'a b',
      'ä',
      '"',
      '<b>',
      'a\tb',
      '%0d%0aSet-Cookie: a',
      secret,
      '',
    ];
    for (const id of made) assert.match(await send(id), UUID, id);
    const twice = rawPost([...HEAD, `${ID}: one`, `${ID}: two`], BODY);
    assert.match(await idOf(twice), UUID, 'two of them');
  });

  it('cannot add headers to an answer, or lines to the log', async () => {
    for (const text of ['a\rSet-Cookie: b=1', 'a\nSet-Cookie: b=1', 'a\0b', 'a\x1b[31m']) {
      const { headers, status } = await sendRaw(test.url, rawPost([...HEAD, `${ID}: ${text}`], BODY));
      assert.equal(headers.get('set-cookie'), null);
      assert.match(headers.get(ID)!, UUID);
      assert.ok(status >= 400);
    }
  });

  it('is not taken from untrusted clients', async () => {
    const strict = await startServer(test.keys, { trust: ['192.0.2.0/24'] });
    assert.match(await idOf(rawPost([...HEAD, `${ID}: mine`], BODY), strict.url), UUID);
    assert.match(await idOf(head('GET /healthz HTTP/1.1', 'Host: a', `${ID}: mine`), strict.url), UUID);
    await strict.stop();
  });

  it('is in the log of refusals and failures, and in the error', async () => {
    const { log, lines } = collectingLog();
    const own = await startTestService({ log });
    await sendRaw(own.url, rawPost([...HEAD, `${ID}: refused-1`, 'Authorization: Bearer nonsense'], BODY));
    await own.store.close();
    await sendRaw(own.url, rawPost([...HEAD, `${ID}: failed-1`, 'Authorization: Bearer other'], BODY));
    assert.deepEqual(
      lines.map(({ message, fields }) => [message, (fields as { requestId?: string }).requestId]),
      [
        ['key refused', 'refused-1'],
        ['the store did not answer', 'failed-1'],
      ],
    );
    await own.stop().catch(() => {});
  });

  it('is that of the app where the app has its own', async () => {
    const { keys, store } = await openTestKeys();
    const outer = new Hono().use(async (c, next) => {
      await next();
      c.header('X-Request-ID', 'of-the-host');
    });
    outer.route('/', await createApp({ keys }));
    const server = await listen({ app: outer, host: '127.0.0.1', port: 0 });
    const { headers } = await fetch(`${server.url}/healthz`);
    assert.equal(headers.get(ID), 'of-the-host');
    await server.stop(0);
    await store.close();
  });
});
