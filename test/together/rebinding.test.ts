import assert from 'node:assert/strict';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { defaultConfig } from '../../src/config/default-config.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { serveMetrics } from '../../src/features/telemetry/metrics-server.ts';
import { startConsoleService, visitorWith } from '../features/console/support/console.ts';
import { routeTo } from '../features/guard/support/forward-auth.ts';
import { collectingLog } from '../support/log.ts';
import type { TestService } from '../support/server.ts';

const EVIL = 'evil.example';

/** The table of docs/security.md, row by row: what a page of any site gets after DNS rebinding to this machine. */
describe('a page that leads its own name to this machine', () => {
  let test: TestService;
  const { log, lines } = collectingLog();
  beforeEach(async () => {
    lines.length = 0;
    test = await startConsoleService({
      log,
      consent: 'both',
      app: {
        config: {
          ...defaultConfig(),
          routes: [routeTo('/open', { kind: 'open' }), routeTo('/closed', { kind: 'key' })],
          people: { by: { header: 'remote-user', groups: undefined }, grant: { '*': ['ADMIN'] } },
        },
      },
    });
  });
  afterEach(() => test.stop());

  /** A request as a page's script can send it: any path, method and header except Host, Origin, Cookie and Sec-…. */
  const ask = async (
    path: string,
    { method = 'GET', body = '', url = test.url, ...headers }: Record<string, string> = {},
  ) => {
    const host = `${EVIL}:${new URL(url).port}`;
    const origin: Record<string, string> = method === 'GET' ? {} : { origin: `http://${host}` };
    return new Promise<{ status: number; body: string; headers: Record<string, unknown> }>((resolve, reject) => {
      const sent = request(url + path, { method, headers: { host, ...origin, ...headers } }, (answer) => {
        text(answer).then(
          (said) => resolve({ status: answer.statusCode!, body: said, headers: answer.headers }),
          reject,
        );
      });
      sent.on('error', reject).end(body);
    });
  };
  const form = { 'content-type': 'application/x-www-form-urlencoded' };

  it('is not signed in by the headers of people', async () => {
    for (const path of ['/console/', '/console/keys', '/console/keys/new', '/console/session'])
      assert.equal((await ask(path, { 'remote-user': 'ada' })).status, 403, path);
    const created = { method: 'POST', 'remote-user': 'ada', body: 'name=CI&role=ADMIN&step=create', ...form };
    assert.equal((await ask('/console/keys/new', created)).status, 403);
    assert.equal((await test.keys.list({}, OPERATOR)).keys.length, 0);
  });

  it('chooses an address for logs and limits, and has no key that it could be used with', async () => {
    await test.keys.create({ name: 'Office', roles: ['ADMIN'], allowFrom: ['192.0.2.0/24'] }, OPERATOR);
    for (const [name, value] of [
      ['x-forwarded-for', '192.0.2.1'],
      ['forwarded', 'for=192.0.2.1'],
    ] as const)
      assert.equal((await ask('/graphql?query={me{name}}', { [name]: value })).status, 401);
  });

  it('chooses the host in answers to itself, without any session', async () => {
    const { visitor } = await visitorWith(test, { name: 'Ada', roles: ['ADMIN'] });
    const { port } = new URL(test.url);
    const said = { 'x-forwarded-host': 'keys.example.org', 'x-forwarded-proto': 'https' };
    assert.ok((await ask('/.well-known/oauth-authorization-server', said)).body.includes('https://keys.example.org'));
    // Not even with the cookie, which browsers keep for the host that set it.
    for (const more of [{}, { 'x-forwarded-host': `keys.example.org:${port}` }])
      assert.equal((await ask('/console/keys', { cookie: visitor.cookies, ...(more as object) })).status, 303);
    assert.equal((await visitor.open('keys')).status, 200);
  });

  it('chooses the id of its request', async () => {
    assert.equal((await ask('/healthz', { 'x-request-id': 'mine' })).headers['x-request-id'], 'mine');
  });

  it('learns by forward-auth which routes are open, and is refused on others', async () => {
    const about = (uri: string) => ({
      'x-forwarded-method': 'GET',
      'x-forwarded-host': 'grafana.example.org',
      'x-forwarded-uri': uri,
      'x-forwarded-proto': 'https',
      'x-forwarded-for': '192.0.2.1',
      'remote-user': 'ada',
    });
    const open = await ask('/auth/caddy', about('/open'));
    assert.deepEqual([open.status, open.headers['x-auth-key-name']], [200, '']);
    assert.equal((await ask('/auth/caddy', about('/closed'))).status, 401);
  });

  it('gets nothing of the feed, GraphQL and introspection without a key', async () => {
    for (const path of ['/feed', '/graphql?query={apiKeys{nodes{name}}}'])
      assert.equal((await ask(path)).status, 401, path);
    assert.equal((await ask('/introspect', { method: 'POST', body: 'token=x', ...form })).status, 401);
  });

  it('sends no form but one with a key', async () => {
    for (const path of ['/console/keys/new', '/console/sign-out', '/device'])
      assert.notEqual((await ask(path, { method: 'POST', body: 'name=CI&step=create', ...form })).status, 200, path);
    assert.equal((await ask('/console/sign-in', { method: 'POST', body: 'key=svc_x', ...form })).status, 403);
    assert.equal((await test.keys.list({}, OPERATOR)).keys.length, 0);
  });

  it('reads no metrics', async () => {
    for (const host of ['127.0.0.1', 'localhost']) {
      const metrics = await serveMetrics(
        { host, port: 0 },
        { contentType: 'text/plain', scrape: async () => 'keys 3' },
      );
      try {
        const { origin } = new URL(metrics.url);
        assert.equal((await ask('/metrics', { url: origin })).status, 403);
        assert.equal((await fetch(metrics.url)).status, 200);
      } finally {
        await metrics.stop();
      }
    }
  });
});
