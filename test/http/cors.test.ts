import assert from 'node:assert/strict';
import { request } from 'node:http';
import { Hono } from 'hono';
import { createApp, type CreateAppOptions } from '../../src/service/create-app.ts';
import { listen, type RunningServer } from '../../src/http/listen.ts';
import { createPrincipal, openTestKeys, type TestKeys } from '../support/keys.ts';

const PAGE = 'https://app.example.org';
const EXPOSED = 'RateLimit, RateLimit-Policy, Retry-After, WWW-Authenticate, X-Request-Id';
/** Headers of answers to other origins only. */
const CORS_HEADER = /^(?:access-control-.*|vary)$/;

describe('a page of another origin', () => {
  let test: TestKeys;
  let secret: string;
  const running: RunningServer[] = [];

  before(async () => {
    test = await openTestKeys();
    ({ secret } = await createPrincipal(test.keys, { name: 'Page', roles: ['ADMIN'] }));
  });
  after(() => test.store.close());
  afterEach(async () => {
    await Promise.all(running.splice(0).map((server) => server.stop(0)));
  });

  /** Starts two servers, one with Node's adapter and one with Hono's. */
  async function start(cors: CreateAppOptions['cors'], keys = test.keys): Promise<string[]> {
    const app = await createApp({ keys, ...(cors && { cors }) });
    const outer = new Hono()
      .use(async (_, next) => next())
      .route('/', app)
      .notFound((c) => app.fetch(c.req.raw));
    for (const served of [app, outer]) running.push(await listen({ app: served, host: '127.0.0.1', port: 0 }));
    return running.map(({ url }) => url);
  }

  /** Calls all servers, which must agree. @returns the status and the headers about CORS */
  async function ask(
    urls: readonly string[],
    path: string,
    method: string,
    headers: Record<string, string>,
    body = '',
  ) {
    const answers = await Promise.all(
      urls.map(
        (url) =>
          new Promise<{ status: number | undefined; cors: Record<string, unknown> }>((resolve, reject) => {
            // Not with fetch, which does not send Origin.
            const sent = request(url + path, { method, headers, agent: false }, (reply) => {
              const entries = Object.entries(reply.headers).filter(([name]) => CORS_HEADER.test(name));
              assert.equal(reply.headers['x-content-type-options'], 'nosniff');
              reply.resume().on('end', () => resolve({ status: reply.statusCode, cors: Object.fromEntries(entries) }));
            });
            sent.on('error', reject).end(body);
          }),
      ),
    );
    for (const answer of answers) assert.deepEqual(answer, answers[0]);
    return answers[0]!;
  }
  const preflight = (origin: string, more: Record<string, string> = {}) => ({
    origin,
    'access-control-request-method': 'POST',
    ...more,
  });
  const key = () => ({ authorization: `Bearer ${secret}`, 'content-type': 'application/json' });
  const allowed = { 'access-control-allow-origin': PAGE, 'access-control-expose-headers': EXPOSED, vary: 'Origin' };

  it('that is allowed learns so before it sends its key', async () => {
    const urls = await start({ origins: ['https://other.example.org', PAGE] });
    const wanted = 'authorization,content-type,x-api-key,traceparent';
    const headers = preflight(PAGE, { 'access-control-request-headers': wanted });
    for (const path of ['/graphql', '/graphql?query={online}', '/healthz', '/nothing']) {
      assert.deepEqual(
        await ask(urls, path, 'OPTIONS', headers),
        {
          status: 204,
          cors: {
            ...allowed,
            'access-control-allow-methods': 'GET, HEAD, POST',
            'access-control-allow-headers': wanted,
            'access-control-max-age': '7200',
          },
        },
        path,
      );
    }
  });

  it('that is allowed may read every answer, errors too', async () => {
    const urls = await start({ origins: [PAGE] });
    const origin = PAGE;
    const online = '{"query":"{ online }"}';
    for (const [path, method, headers, body, status] of [
      ['/graphql', 'POST', key(), online, 200],
      ['/graphql?query={online}', 'GET', key(), '', 200],
      ['/graphql', 'POST', key(), '{', 400],
      ['/graphql', 'POST', {}, online, 401],
      ['/graphql', 'POST', { authorization: 'Bearer' }, online, 400],
      ['/graphql?query=mutation{deleteApiKeys(ids:[]){deleted}}', 'GET', key(), '', 405],
      ['/graphql', 'PUT', key(), online, 405],
      ['/graphql', 'POST', { ...key(), 'content-type': 'text/plain' }, online, 415],
      ['/healthz', 'GET', {}, '', 200],
      ['/readyz', 'HEAD', {}, '', 200],
      ['/nothing', 'GET', {}, '', 404],
    ] as const)
      assert.deepEqual(await ask(urls, path, method, { ...headers, origin }, body), { status, cors: allowed }, path);
  });

  it('that is not allowed learns nothing, by a preflight or an answer', async () => {
    const urls = await start({ origins: [PAGE] });
    for (const origin of [
      'https://evil.example',
      'http://app.example.org',
      'https://app.example.org:8443',
      'https://app.example.org.evil.example',
      'https://evil-app.example.org',
      'https://APP.example.org',
      `${PAGE}, https://evil.example`,
      'null',
      '',
    ]) {
      const cors = { vary: 'Origin' };
      assert.deepEqual(await ask(urls, '/graphql', 'OPTIONS', preflight(origin)), { status: 204, cors }, origin);
      const answer = await ask(urls, '/graphql', 'POST', { ...key(), origin }, '{"query":"{ online }"}');
      assert.deepEqual(answer, { status: 200, cors });
    }
    assert.deepEqual((await ask(urls, '/graphql', 'POST', key(), '{"query":"{ online }"}')).cors, { vary: 'Origin' });
  });

  it('gets no answer but to its preflight where no origins are allowed, which is the default', async () => {
    const urls = await start(undefined);
    assert.deepEqual(await ask(urls, '/graphql', 'OPTIONS', preflight(PAGE)), { status: 204, cors: {} });
    const answer = await ask(urls, '/graphql', 'POST', { ...key(), origin: PAGE }, '{"query":"{ online }"}');
    assert.deepEqual(answer, { status: 200, cors: {} });
  });

  it('is allowed from everywhere by "*", but never with credentials that a browser sends by itself', async () => {
    const urls = await start({ origins: ['*'] });
    for (const origin of [PAGE, 'null', 'moz-extension://0b9e'])
      assert.deepEqual(await ask(urls, '/graphql', 'POST', { ...key(), origin }, '{"query":"{ online }"}'), {
        status: 200,
        cors: { 'access-control-allow-origin': '*', 'access-control-expose-headers': EXPOSED },
      });
    const { cors } = await ask(urls, '/graphql', 'OPTIONS', preflight(PAGE));
    assert.equal(cors['access-control-allow-credentials'], undefined);
  });

  it('does not count as a preflight: a plain OPTIONS needs a key, and gets 405', async () => {
    const urls = await start({ origins: [PAGE] });
    assert.equal((await ask(urls, '/graphql', 'OPTIONS', { origin: PAGE })).status, 401);
    assert.equal((await ask(urls, '/graphql', 'OPTIONS', { 'access-control-request-method': 'POST' })).status, 401);
    assert.equal((await ask(urls, '/graphql', 'OPTIONS', { ...key(), origin: PAGE })).status, 405);
  });

  it('may read that the store does not answer, and when to ask again', async () => {
    const broken = await openTestKeys();
    const urls = await start({ origins: [PAGE] }, broken.keys);
    await broken.store.close();
    for (const path of ['/graphql?query={online}', '/readyz'])
      assert.deepEqual(await ask(urls, path, 'GET', { ...key(), origin: PAGE }), { status: 503, cors: allowed }, path);
  });

  it('is named as a browser names it: anything else is refused at the start', async () => {
    for (const origin of [
      'https://app.example.org',
      'http://localhost:3000',
      'https://[::1]:8443',
      'https://xn--kse-qla.example',
      'chrome-extension://kbfnbcaeplbcioakkpcpgfkobkghlhen',
      'capacitor://localhost',
      'tauri://localhost',
      '*',
    ])
      await createApp({ keys: test.keys, cors: { origins: [origin] } });
    for (const origin of [
      '',
      'app.example.org',
      'https://app.example.org/',
      'https://app.example.org/path',
      'https://app.example.org:443',
      'http://app.example.org:80',
      'https://APP.example.org',
      'HTTPS://app.example.org',
      'https://käse.example',
      'https://user@app.example.org',
      'https://*.example.org',
      'https://app.example.org, https://b.example.org',
      ' https://app.example.org',
      'null',
      'file:///x',
      '**',
    ])
      await assert.rejects(
        createApp({ keys: test.keys, cors: { origins: [origin] } }),
        (error: Error) =>
          error.message.startsWith(
            origin === ''
              ? 'createApp: The option "cors.origins" has an item that is empty.'
              : `createApp: "${origin}" is not an origin. `,
          ),
        origin,
      );
  });
});
