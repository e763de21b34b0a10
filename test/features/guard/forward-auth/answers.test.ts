import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { Hono } from 'hono';
import { createApp } from '../../../../src/service/create-app.ts';
import { defaultConfig } from '../../../../src/config/default-config.ts';
import { listen } from '../../../../src/http/listen.ts';
import { OPERATOR } from '../../../../src/keys/authorization/principal.ts';
import {
  ALL_PROXIES,
  type AskedServer,
  ASKING,
  keyLine,
  routeTo,
  startAskedServer,
  withHeaders,
} from '../support/forward-auth.ts';
import { Networks } from '../../../../src/keys/basics/networks.ts';
import { describeOnEach } from '../../../support/dialects.ts';
import { createChild, createPrincipal, LOSSES, openTestKeys, whileLimited } from '../../../support/keys.ts';
import { withoutRequestId } from '../../../support/log.ts';
import { Random } from '../../../support/random.ts';
import { sendRaw } from '../../../support/raw-http.ts';
import { tempFolder } from '../../../support/temp.ts';
import { until } from '../../../support/until.ts';

const READ = '?permission=GRAFANA:READ_ANY';

describeOnEach('the answer to a proxy', () => {
  let server: AskedServer;
  let key: string;
  before(async () => {
    server = await startAskedServer();
    const { key: secret } = await server.keys.create({ name: 'Reader', permissions: ['GRAFANA:READ_ANY'] }, OPERATOR);
    key = keyLine(secret);
  });
  after(() => server.stop());

  it('tells a client without a valid key how to send one', async () => {
    const realm = 'Bearer realm="svc-api"';
    for (const [lines, challenge] of [
      [[], realm],
      [['Authorization: Basic dXNlcjpwYXNz'], realm],
      [[keyLine('x')], `${realm}, error="invalid_token"`],
      [['Authorization: Bearer'], `${realm}, error="invalid_request"`],
      [['Authorization:'], `${realm}, error="invalid_request"`],
      [[key, key], `${realm}, error="invalid_request"`],
      [[key, 'authorization: Basic eDp5'], `${realm}, error="invalid_request"`],
    ] as const) {
      for (const proxy of ALL_PROXIES) {
        const { status, headers } = await server.send(withHeaders(ASKING[proxy]({}, READ), ...lines));
        assert.deepEqual([proxy, lines, status, headers.get('www-authenticate')], [proxy, lines, 401, challenge]);
      }
    }
  });

  it('counts as a use of the key, and of the permissions that were needed, without a write on its way', async () => {
    const scheduled: (() => void)[] = [];
    let writes = 0;
    const own = await startAskedServer({
      schedule: (work) => scheduled.push(work),
      repository: (repository) => ({ ...repository, write: (...args) => (writes++, repository.write(...args)) }),
    });
    const permissions = ['GRAFANA:READ_ANY', 'GRAFANA:UPDATE_ANY'] as const;
    const { key: secret, apiKey: key } = await own.keys.create({ name: 'Used', permissions }, OPERATOR);
    writes = 0;
    for (let index = 0; index < 3; index += 1) {
      const { status } = await own.send(withHeaders(ASKING.nginx({}, READ), keyLine(secret)));
      assert.equal(status, 200);
    }
    assert.equal(writes, 0);
    for (const work of scheduled) work();
    await until(async () => (await own.keys.useOf([key.id])).get(key.id)?.uses === 3);
    assert.deepEqual(own.usedGrants.of(key.id), ['GRAFANA:READ_ANY']);
    await own.stop();
  });

  it('is no from the next request on for a key that is deleted, disabled, narrowed or expired', async () => {
    const ends = {
      deleted: (id: string) => server.keys.delete([id], OPERATOR),
      disabled: (id: string) => server.keys.setEnabled(id, false, OPERATOR),
      narrowed: (id: string) => server.keys.update(id, { permissions: ['ME:READ_OWN'] }, OPERATOR),
      expired: async () => void (server.time.now += 60_000),
    };
    for (const [name, end] of Object.entries(ends)) {
      const permissions = ['GRAFANA:READ_ANY'] as const;
      const { key: secret, apiKey: key } = await server.keys.create({ name, permissions, expiresIn: '1m' }, OPERATOR);
      const ask = async () => (await server.send(withHeaders(ASKING.nginx({}, READ), keyLine(secret)))).status;
      assert.equal(await ask(), 200);
      await end(key.id);
      assert.deepEqual([name, await ask()], [name, name === 'narrowed' ? 403 : 401]);
    }
  });

  it("depends on the key's permissions after the store has checked its limits", async () => {
    for (const [loss, { lose, refused }] of Object.entries(LOSSES)) {
      const allowFrom = ['203.0.113.0/24'];
      const child = await createChild(server.keys, { roles: ['ADMIN'], limits: ['100/m'], allowFrom });
      const ask = () => server.send(withHeaders(ASKING.nginx({}, READ), keyLine(child.secret)));
      whileLimited(server.keys, () => {});
      assert.equal((await ask()).status, 200, loss);
      whileLimited(server.keys, () => lose(server, child));
      assert.equal((await ask()).status, refused, loss);
    }
  });

  it("names the key's current roles, within those of its creator", async () => {
    const parent = await createPrincipal(server.keys, { name: 'Parent', roles: ['ADMIN'] });
    const child = await server.keys.create({ name: 'Child', roles: ['ADMIN', 'GUEST'] }, parent.principal);
    const rolesOf = async () =>
      (await server.send(withHeaders(ASKING.nginx({}, '?key'), keyLine(child.key)))).headers.get('x-auth-roles');
    assert.equal(await rolesOf(), 'ADMIN,GUEST');
    await server.keys.update(parent.principal.apiKey.id, { roles: ['VIEWER'] }, OPERATOR);
    assert.equal(await rolesOf(), 'GUEST');
  });

  it('says 503 while the store does not', async () => {
    let isDown = false;
    const own = await startAskedServer({
      repository: (repository) => ({
        ...repository,
        findByDigest: (digest) => {
          if (isDown) throw Object.assign(new Error('The disk is gone.'), { code: 'STORE_FAILED' });
          return repository.findByDigest(digest);
        },
        revision: () => (isDown ? undefined : repository.revision()),
      }),
    });
    const { key: secret } = await own.keys.create({ name: 'Reader', permissions: ['GRAFANA:READ_ANY'] }, OPERATOR);
    const ask = () => own.send(withHeaders(ASKING.nginx({}, READ), keyLine(secret)));
    assert.equal((await ask()).status, 200);
    isDown = true;
    const { status, headers } = await ask();
    assert.deepEqual([status, headers.get('retry-after'), headers.get('x-auth-key-id')], [503, '1', null]);
    isDown = false;
    assert.equal((await ask()).status, 200);
    await own.stop();
  });

  it('of a key that is over its limit is 429, but 403 to nginx, which passes on no 429', async () => {
    for (const proxy of ALL_PROXIES) {
      const input = { name: `Limited ${proxy}`, permissions: ['GRAFANA:READ_ANY'], limits: ['1/h'] } as const;
      const { key: secret } = await server.keys.create(input, OPERATOR);
      const ask = () => server.send(withHeaders(ASKING[proxy]({}, READ), keyLine(secret)));
      assert.equal((await ask()).status, 200);
      const { status, headers } = await ask();
      assert.deepEqual([proxy, status], [proxy, proxy === 'nginx' ? 403 : 429]);
      assert.ok(Number(headers.get('retry-after')) > 1000);
      assert.equal(headers.get('ratelimit-policy'), '"hour";q=1;w=3600');
    }
  });

  it('reads a key where the operator lets it stand', async () => {
    const credentials = ['bearer', { header: 'x-api-key' }, 'basic'] as const;
    const own = await startAskedServer({ config: { credentials } });
    const { key: secret } = await own.keys.create({ name: 'Reader', permissions: ['GRAFANA:READ_ANY'] }, OPERATOR);
    const basic = `Authorization: Basic ${Buffer.from(`me:${secret}`).toString('base64')}`;
    for (const [lines, expected] of [
      [[keyLine(secret)], 200],
      [[`X-Api-Key: ${secret}`], 200],
      [[basic], 200],
      [[basic, `X-Api-Key: ${secret}`], 401],
      [[`X-Api-Key: ${secret}`, `X-Api-Key: ${secret}`], 401],
      [[], 401],
    ] as const) {
      const { status, headers } = await own.send(withHeaders(ASKING.nginx({}, READ), ...lines));
      assert.deepEqual([lines, status], [lines, expected]);
      assert.equal(headers.has('www-authenticate'), status === 401);
    }
    await own.stop();
    const only = await startAskedServer({ config: { credentials: ['basic'] } });
    const refused = await only.send(withHeaders(ASKING.nginx({}, READ), 'Authorization: Basic ?'));
    assert.deepEqual([refused.status, refused.headers.get('www-authenticate')?.slice(0, 5)], [401, 'Basic']);
    await only.stop();
  });

  it('is one that proxies know, whatever the request is', async () => {
    const random = new Random(7);
    const known = new Set([200, 401, 403]);
    const targets = [
      '/auth',
      '/auth/nginx',
      `/auth/nginx${READ}`,
      '/auth/envoy/x',
      '/auth/key/envoy/x',
      '/auth/a/b?c',
      '/auth/%',
    ];
    const methods = ['GET', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'TRACE', 'PROPFIND', 'QUERY', 'PURGE'];
    const lines = [
      ...ASKING.nginx({ target: '/x' }).headers,
      ...ASKING.caddy({ target: '/x' }).headers,
      key,
      'Host: a b',
      'Host: ',
      'Accept: nothing/at-all',
      'Content-Type: text/plain',
      'Content-Encoding: br',
      'Expect: 100-continue',
      'Expect: 200-ok',
      'Connection: Upgrade',
      'Upgrade: websocket',
      'If-None-Match: *',
      'Range: bytes=0-1',
      'Cookie: a=b',
      'X-Http-Method-Override: DELETE',
      'Origin: https://evil.example.org',
      'Access-Control-Request-Method: POST',
      'X-Original-URI: http://[',
    ];
    for (let round = 0; round < 500; round += 1) {
      const [method, target] = [random.pick(methods), random.pick(targets)];
      const asking = { method, target, headers: random.some(lines, 12) };
      const { status, headers } = await server.send(asking);
      assert.ok(known.has(status), `${status}: ${JSON.stringify(asking)}`);
      assert.deepEqual([headers.get('location'), headers.get('set-cookie')], [null, null]);
      assert.equal(headers.get('cache-control'), 'no-store');
    }
  });

  it('is also 403 to invalid HTTP', async () => {
    const { headers } = ASKING.nginx({});
    for (const line of [
      'GET /auth/nginx HTTP/1.1\r\nX-A: \x01',
      'GET /auth/envoy/\xff HTTP/1.1',
      'GET /auth/nginx?permission=GRAFANA:READ_ANY HTTP/1.1\r\nContent-Length: -1',
      `GET /auth/nginx HTTP/1.1\r\nCookie: ${'x'.repeat(20_000)}`,
    ]) {
      const { status } = await sendRaw(server.url, Buffer.from([line, ...headers, '\r\n'].join('\r\n'), 'latin1'));
      assert.deepEqual([line.slice(0, 60), status], [line.slice(0, 60), 403]);
    }
    assert.equal((await sendRaw(server.url, 'GET /authority HTTP/1.1\r\nX-A: \x01\r\n\r\n')).status, 400);
  });

  it('does not wait for a body', async () => {
    const { target, headers } = withHeaders(ASKING.nginx({}, READ), key, 'Content-Length: 1000000');
    assert.equal((await server.send({ target, headers })).status, 200);
    assert.equal((await server.send({ method: 'POST', target, headers })).status, 200);
  });
});

describe('a request to an MCP server', () => {
  it('is for guard only: proxies do not report the called tool', async () => {
    const mcp = { tools: ['read_*'], resources: [], prompts: [] };
    const routes = [routeTo('/mcp', { kind: 'key' }, { mcp })];
    const server = await startAskedServer({ config: { routes } });
    const { key } = await server.keys.create({ name: 'Key', roles: ['ADMIN'] }, OPERATOR);
    for (const proxy of ALL_PROXIES) {
      const asking = withHeaders(ASKING[proxy]({ target: '/mcp' }), keyLine(key));
      assert.equal((await server.send(asking)).status, 403, proxy);
    }
    assert.equal((withoutRequestId(server.lines[0]!.fields) as { reason: string }).reason, 'mcp');
    await server.stop();
  });
});

describe('a proxy that asks', () => {
  it('is not believed from an address that is not trusted', async () => {
    const routes = [routeTo('/**', { kind: 'open' })];
    const server = await startAskedServer({ config: { routes }, trust: ['192.0.2.0/24', '2001:db8::/32'] });
    for (const proxy of ALL_PROXIES) {
      const { status, headers } = await server.send(
        withHeaders(ASKING[proxy]({ target: '/x' }), 'X-Forwarded-For: 192.0.2.1', 'X-Real-IP: 192.0.2.1'),
      );
      assert.deepEqual([proxy, status, headers.get('x-auth-key-id')], [proxy, 403, null]);
    }
    assert.deepEqual(withoutRequestId(server.lines[0]!.fields), {
      reason: 'not trusted',
      detail: 'the address of the proxy must be in "trust" of svc-api.yaml',
      address: '127.0.0.1',
    });
    await server.stop();
  });

  it('is believed on a Unix socket, as this machine is', async () => {
    const { keys, store } = await openTestKeys();
    const routes = [routeTo('/x', { kind: 'open' })];
    for (const [trust, expected] of [
      [defaultConfig().trust, 200],
      [new Networks(['192.0.2.0/24']), 403],
    ] as const) {
      const app = await createApp({ keys, config: { ...defaultConfig(), routes, trust } });
      const socketPath = join(tempFolder(), 'api.sock');
      const server = await listen({ app, socket: socketPath });
      const { target: path, headers } = ASKING.nginx({ target: '/x' });
      const asking = request({ socketPath, path, headers: headers.flatMap((line) => line.split(': ')) });
      const [response] = (await once(asking.end(), 'response')) as [IncomingMessage];
      assert.equal(response.resume().statusCode, expected);
      await server.stop(0);
    }
    await store.close();
  });

  it('is believed behind the middleware of a host that mounts the app, and only by a server of Node', async () => {
    const { keys, store } = await openTestKeys({ resources: ['GRAFANA'] });
    const routes = [routeTo('/public/**', { kind: 'open' }), routeTo('/**', { kind: 'key' })];
    const app = await createApp({ keys, config: { ...defaultConfig(), routes } });
    const seen: string[] = [];
    const host = new Hono()
      .use(async (c, next) => {
        seen.push(c.req.path);
        await next();
      })
      .route('/keys', app);
    const server = await listen({ app: host, host: '127.0.0.1', port: 0 });
    for (const [proxy, asked, expected] of [
      ['nginx', '/public/x', 200],
      ['nginx', '/x', 401],
      ['traefik', '/public/x', 200],
      ['envoy', '/public/x?y', 200],
      // Only the server itself receives a path in place of the host unchanged.
      ['envoy', '/public/../x', 400],
    ] as const) {
      const { method = 'GET', target, headers } = ASKING[proxy]({ target: asked });
      const head = [`${method} /keys${target} HTTP/1.1`, ...headers, '\r\n'].join('\r\n');
      assert.deepEqual([proxy, asked, (await sendRaw(server.url, head)).status], [proxy, asked, expected]);
    }
    assert.equal(seen.length, 4);
    await server.stop(0);
    const { target, headers } = ASKING.nginx({ target: '/public/x' });
    const init = { headers: headers.map((line): [string, string] => line.split(': ') as [string, string]) };
    assert.equal((await app.request(target, init)).status, 403);
    await store.close();
  });
});
