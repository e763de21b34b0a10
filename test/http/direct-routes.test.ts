import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { Hono } from 'hono';
import { createApp } from '../../src/service/create-app.ts';
import { DirectRoutes } from '../../src/http/adapters.ts';
import type { ServiceApp } from '../../src/http/app.ts';
import { openTestKeys, type TestKeys } from '../support/keys.ts';

describe('a request that needs nothing of Hono', () => {
  let test: TestKeys;
  let app: ServiceApp;
  before(async () => {
    test = await openTestKeys();
    app = await createApp({ keys: test.keys });
  });
  after(() => test.store.close());

  const isFound = (outer: Hono, url = '/graphql', method = 'POST') =>
    new DirectRoutes(outer).find({ method, url } as IncomingMessage) !== undefined;

  it('is a POST or GET to the endpoint, or a health check, also of an app that is mounted in another', () => {
    assert.ok(isFound(app as never));
    for (const path of ['/healthz', '/readyz']) {
      assert.ok(isFound(app as never, path, 'GET'));
      assert.ok(isFound(new Hono().route('/api', app), `/api${path}`, 'GET'));
    }
    assert.ok(isFound(app as never, '/graphql?query={online}', 'GET'));
    assert.ok(isFound(new Hono().route('/', app)));
    assert.ok(isFound(new Hono().get('/', (c) => c.text('')).route('/api', app), '/api/graphql'));
    assert.ok(isFound(new Hono().route('/a', new Hono().route('/b', app)), '/a/b/graphql'));
  });

  it('is no other request', () => {
    for (const [url, method] of [
      ['/graphql', 'PUT'],
      ['/graphql', 'HEAD'],
      ['/graphql?query={online}#', 'GET'],
      ['/graphql?query={online}\u00e4', 'GET'],
      ['/healthz', 'HEAD'],
      ['/healthz', 'POST'],
      ['/', 'GET'],
      ['/graphql/', 'POST'],
      ['/graphq%6c', 'POST'],
      ['http://localhost/graphql', 'POST'],
    ] as const)
      assert.ok(!isFound(app as never, url, method), `${method} ${url}`);
  });

  it('is none that passes a middleware of somebody else', () => {
    const middleware = async (_: unknown, next: () => Promise<void>) => next();
    assert.ok(!isFound(new Hono().use(middleware).route('/', app)));
    assert.ok(!isFound(new Hono().use('/graphql', middleware).route('/', app)));
    assert.ok(!isFound(new Hono().use('/healthz', middleware).route('/', app), '/healthz', 'GET'));
    assert.ok(!isFound(new Hono().mount('/', app.fetch)));
    assert.ok(isFound(new Hono().use('/other/*', middleware).route('/', app)));
    const page = new Hono().get('/graphql', (c) => c.text('a page')).route('/', app);
    assert.deepEqual([isFound(page), isFound(page, '/graphql', 'GET')], [true, false]);
  });

  it('is none to an app that routes by more than the path', () => {
    const getPath = (request: Request) => `/${new URL(request.url).hostname}${new URL(request.url).pathname}`;
    assert.ok(!isFound(new Hono({ getPath }).route('/', app)));
    assert.ok(isFound(new Hono({ strict: false }).route('/', app)));
  });
});
