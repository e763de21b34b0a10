import assert from 'node:assert/strict';
import { always, byRoutes, readRequirements } from '../../../../src/features/guard/access.ts';
import { OPERATOR } from '../../../../src/keys/authorization/principal.ts';
import { Networks } from '../../../../src/keys/basics/networks.ts';
import type { Permission } from '../../../../src/keys/permissions/catalog.ts';
import { type Allow, createRouter, type Route } from '../../../../src/features/routes/router.ts';
import { browse } from '../../../support/door.ts';
import { type GuardedService, startGuarded } from '../support/guard.ts';
import { connectRaw } from '../../../support/raw-connection.ts';
import { createPrincipal } from '../../../support/keys.ts';
import { collectingLog } from '../../../support/log.ts';
import { until } from '../../../support/until.ts';

const [READ, UPDATE]: [Permission, Permission] = ['DASHBOARD:READ_ANY', 'DASHBOARD:UPDATE_ANY'];

describe('a request through the guard', () => {
  let service: GuardedService;
  before(async () => {
    service = await startGuarded((incoming, outgoing) => {
      if (incoming.url === '/read/events') outgoing.write('data: 1\n\n');
      else outgoing.end(JSON.stringify({ url: incoming.url, headers: incoming.headers }));
    });
  });
  after(() => service.stop());

  const get = async (url: string, headers: Record<string, string> = {}, path = '/') => {
    const reply = await fetch(url + path, { headers });
    const body = (await reply.json()) as {
      headers?: Record<string, string>;
      errors?: [{ message: string; extensions: { code: string } }];
    };
    const challenge = reply.headers.get('www-authenticate');
    return { status: reply.status, challenge, ...body, error: body.errors?.[0] };
  };

  const keyWith = async (name: string, permissions: readonly Permission[]) => {
    const { key: secret } = await service.keys.create({ name, permissions }, OPERATOR);
    return { authorization: `Bearer ${secret}` };
  };

  describe('by permissions', () => {
    it('needs all of them', async () => {
      const url = await service.beside({ requirements: always({ kind: 'all', permissions: [READ, UPDATE] }) });
      const one = await get(url, await keyWith('One of all', [READ]));
      assert.deepEqual(
        [one.status, one.error],
        [403, { message: `This key lacks ${UPDATE}.`, extensions: { code: 'FORBIDDEN' } }],
      );
      assert.equal(one.challenge, `Bearer realm="svc-api", error="insufficient_scope", scope="${UPDATE}"`);
      const both = await get(url, await keyWith('Both', [READ, UPDATE]));
      assert.deepEqual([both.status, both.headers!['x-auth-permission']], [200, `${READ},${UPDATE}`]);
    });

    it('needs any of them', async () => {
      const url = await service.beside({ requirements: always({ kind: 'any', permissions: [READ, UPDATE] }) });
      assert.equal((await get(url, await keyWith('None', ['ME:READ_OWN']))).status, 403);
      const second = await get(url, await keyWith('Second', [UPDATE]));
      assert.deepEqual([second.status, second.headers!['x-auth-permission']], [200, UPDATE]);
    });

    it('needs only a key where that is enough', async () => {
      const url = await service.beside({ requirements: always({ kind: 'key' }) });
      assert.equal((await get(url)).status, 401);
      const any = await get(url, await keyWith('Any', ['ME:READ_OWN']));
      assert.deepEqual([any.status, any.headers!['x-auth-permission']], [200, '']);
    });
  });

  describe('by the method', () => {
    const statuses = async (url: string, authorization: string, headers: Record<string, string> = {}) =>
      Promise.all(
        ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE', 'PROPFIND'].map(
          async (method) => (await fetch(url, { method, headers: { authorization, ...headers } })).status,
        ),
      );

    it('needs that permission on the resource', async () => {
      const { catalog } = service.keys;
      const url = await service.beside({
        requirements: readRequirements(
          { resource: 'dashboard', permissions: undefined, anyKey: false },
          { routes: [], catalog },
        ),
      });
      const reader = await keyWith('Reads', [READ]);
      assert.deepEqual(await statuses(url, reader.authorization), [200, 200, 200, 403, 403, 403, 403, 403]);
      const writer = await keyWith('Writes', ['DASHBOARD:CREATE_ANY', UPDATE, 'DASHBOARD:DELETE_ANY']);
      assert.deepEqual(await statuses(url, writer.authorization), [403, 403, 403, 200, 200, 200, 200, 403]);
      const overriding = { 'X-HTTP-Method-Override': 'GET' };
      assert.deepEqual(await statuses(url, writer.authorization, overriding), Array(8).fill(403));
    });

    it('needs more than reading, unless the operator says otherwise', async () => {
      const { catalog } = service.keys;
      const asked = { permissions: [READ], anyKey: false };
      const { authorization } = await keyWith('Reads and updates', [READ, UPDATE]);
      const bare = await service.beside({ requirements: readRequirements(asked, { routes: [], catalog }) });
      assert.deepEqual(await statuses(bare, authorization), [200, 200, 200, 403, 403, 403, 403, 403]);
      const any = { ...asked, anyMethod: true };
      const open = await service.beside({ requirements: readRequirements(any, { routes: [], catalog }) });
      assert.deepEqual(await statuses(open, authorization), Array(8).fill(200));
    });

    it('is not by an upgrade that no service has to take for one', async () => {
      const { catalog } = service.keys;
      const asked = { resource: 'DASHBOARD', permissions: undefined, anyKey: false };
      const url = await service.beside({ requirements: readRequirements(asked, { routes: [], catalog }) });
      const raw = connectRaw(url);
      const { authorization } = await keyWith('Upgrades', [READ]);
      raw.request(
        'POST / HTTP/1.1',
        'Host: a',
        `Authorization: ${authorization}`,
        'Connection: upgrade',
        'Upgrade: tcp',
      );
      await raw.receives(/^HTTP\/1\.1 403 [^]*DASHBOARD:CREATE_ANY/);
      raw.socket.destroy();
    });
  });

  it('needs to send the key where it may stand, and the service does not get it from there', async () => {
    const url = await service.beside({ credentials: ['bearer', 'basic', { header: 'x-api-key' }] });
    const basic = `Basic ${Buffer.from(`anybody:${service.secret}`).toString('base64')}`;
    const places: Record<string, string>[] = [
      { authorization: `bearer ${service.secret}` },
      { authorization: basic },
      { 'X-API-Key': service.secret },
    ];
    for (const header of places) {
      const { status, headers } = await get(url, header);
      assert.deepEqual([status, headers!['authorization'], headers!['x-api-key']], [200, undefined, undefined]);
    }
    const { status, headers: answered } = await browse(url);
    assert.deepEqual([status, answered['www-authenticate']?.startsWith('Basic realm="svc-api"')], [401, true]);
    const several = await get(url, { authorization: basic, 'X-API-Key': service.secret });
    assert.deepEqual([several.status, several.error?.extensions.code], [400, 'INVALID_REQUEST']);
    // A spelling that some services accept as the header.
    const variant = await get(url, { authorization: basic, x_api_key: service.secret });
    assert.deepEqual([variant.status, variant.headers!['x_api_key']], [200, undefined]);
  });

  it('may use credentials of the service itself beside the key', async () => {
    const url = await service.beside({ credentials: [{ header: 'x-api-key' }] });
    const { headers } = await get(url, { authorization: 'Basic YTpi', 'x-api-key': service.secret });
    assert.equal(headers!['authorization'], 'Basic YTpi');
  });

  it('is recorded as a use of the key and of the permission', async () => {
    const { keys, usedGrants } = service;
    const { secret, principal } = await createPrincipal(keys, { name: 'Used', permissions: [READ, UPDATE] });
    await get(service.url, { authorization: `Bearer ${secret}` });
    await keys.finishActivity();
    const usage = await keys.useOf([principal.apiKey.id]);
    // Creating the principal was a request, too.
    assert.deepEqual([usedGrants.of(principal.apiKey.id), usage.get(principal.apiKey.id)?.uses], [[READ], 2]);
  });

  it('is held to the limits of the key, which every answer shows', async () => {
    const { key: secret } = await service.keys.create(
      { name: 'Limited', permissions: [READ], limits: ['2/h'] },
      OPERATOR,
    );
    const ask = () => fetch(service.url, { headers: { authorization: `Bearer ${secret}` } });
    const told = [await ask(), await ask(), await ask()].map(({ status, headers }) => [
      status,
      headers.get('ratelimit-policy'),
      headers.get('ratelimit')?.slice(0, '"hour";r=0'.length),
    ]);
    const policy = '"hour";q=2;w=3600';
    assert.deepEqual(told, [
      [200, policy, '"hour";r=1'],
      [200, policy, '"hour";r=0'],
      [429, policy, '"hour";r=0'],
    ]);
  });

  it('is logged where it is refused', async () => {
    const { log, lines } = collectingLog();
    const url = await service.beside({ log });
    await get(url, await keyWith('Logged', ['ME:READ_OWN']));
    const { fields, message } = lines[0]!;
    assert.equal(message, 'request forbidden');
    const { missing, address } = fields as { missing: string[]; address: string };
    assert.deepEqual([missing, address], [[READ], '127.0.0.1']);
  });

  describe('by routes', () => {
    const route = (path: string, allow: Allow, more: Partial<Route> = {}): Route => ({
      host: '*',
      path,
      allow,
      preflightOpen: false,
      ...more,
    });
    const routes = [
      route('/read/**', { kind: 'all', permissions: [READ] }),
      route('/read/**', { kind: 'all', permissions: [UPDATE] }, { methods: ['POST'], preflightOpen: true }),
      route('/public/**', { kind: 'open' }),
      route('/public/caf\u00e9/**', { kind: 'all', permissions: [UPDATE] }),
      route('/public/re\u0301sume/**', { kind: 'all', permissions: [UPDATE] }),
    ];
    let url: string;
    const { log, lines } = collectingLog();
    before(async () => {
      url = await service.beside({ requirements: byRoutes(createRouter(routes)), log });
    });
    beforeEach(() => {
      lines.length = 0;
    });

    const bearer = () => ({ authorization: `Bearer ${service.secret}` });

    it('is decided by the most specific one', async () => {
      assert.equal((await get(url, bearer(), '/read/1?x')).status, 200);
      const reply = await fetch(`${url}/read/1`, { method: 'POST', headers: bearer() });
      assert.equal(reply.status, 403);
      assert.equal((await get(url, {}, '/read/1')).status, 401);
    });

    it('needs no key on an open one: the service sees no caller, and gets no key', async () => {
      const forged = { 'X-Auth-Roles': 'ADMIN', ...bearer() };
      const { status, headers } = await get(url, forged, '/public/1');
      const names = ['x-auth-key-id', 'x-auth-key-name', 'x-auth-roles', 'x-auth-permission', 'authorization'];
      assert.deepEqual([status, names.map((name) => headers![name])], [200, ['', '', '', '', undefined]]);
    });

    it('is refused if the path is a stricter one in another Unicode form', async () => {
      for (const [path, expected] of [
        ['/public/caf%C3%A9/x', 401],
        ['/public/cafe%CC%81/x', 403],
        ['/public/re%CC%81sume/x', 401],
        ['/public/r%C3%A9sume/x', 403],
        ['/public/cafe/x', 200],
      ] as const)
        assert.equal((await get(url, {}, path)).status, expected, path);
    });

    it('is a CORS preflight where the route lets preflights pass', async () => {
      const preflight = async (method: string, body?: string) => {
        const headers = { origin: 'https://app.example', 'access-control-request-method': method };
        return (await fetch(`${url}/read/1`, { method: 'OPTIONS', headers, ...(body && { body }) })).status;
      };
      assert.deepEqual([await preflight('POST'), await preflight('GET')], [200, 401]);
      assert.equal(await preflight('POST', 'text'), 401);
      const upgrading = [
        'Origin: a',
        'Access-Control-Request-Method: POST',
        'Connection: upgrade',
        'Upgrade: websocket',
      ];
      const raw = connectRaw(url);
      raw.request('OPTIONS /read/1 HTTP/1.1', 'Host: a', ...upgrading);
      await raw.receives('HTTP/1.1 401 ');
    });

    it('is refused if there is none', async () => {
      const { status, error } = await get(url, bearer(), '/other');
      assert.deepEqual([status, error?.message], [403, 'Request refused: no route matches.']);
      const { fields } = lines[0]!;
      assert.match((fields as { detail: string }).detail, /no route matches: GET 127\.0\.0\.1:\d+\/other$/);
    });

    for (const path of [
      '/public/../read/1',
      '/public/%2e%2e/read/1',
      '/public//read',
      '/public/a%2Fb',
      '/public;a',
      '/public/%252e',
    ]) {
      it(`is refused for ${path}: services can read it in several ways (GHSA-p224-6x5r-fjpm)`, async () => {
        const raw = connectRaw(url);
        raw.request(`GET ${path} HTTP/1.1`, 'Host: a', service.authorization);
        await raw.receives(/^HTTP\/1\.1 403 /);
        raw.socket.destroy();
      });
    }

    it('is refused if its query asks the service for a method with another route', async () => {
      assert.equal((await get(url, bearer(), '/read/1?_method=PUT')).status, 200);
      const { status, error } = await get(url, bearer(), '/read/1?a&_method=post');
      const message = 'Request refused: the query asks for POST, which falls under another rule.';
      assert.deepEqual([status, error?.message], [403, message]);
    });

    it("is refused if it asks the service for another method or path than its route's", async () => {
      const forms = [
        'X-HTTP-Method-Override: DELETE',
        'X_HTTP_METHOD_OVERRIDE: DELETE',
        'X-Original-URL: /admin',
        'X-Rewrite-URL: /admin',
        'Script_Name: /public',
        'X-Script-Name: /public',
        'Path_Info: /admin',
      ];
      for (const line of forms) {
        const raw = connectRaw(url);
        raw.request('GET /public/1 HTTP/1.1', 'Host: a', service.authorization, line);
        await raw.receives(/^HTTP\/1\.1 403 [^]*would change the request/);
        raw.socket.destroy();
      }
    });
  });

  it('changes with the rules, also for open streams', async () => {
    const raw = connectRaw(service.url);
    raw.request('GET /read/events HTTP/1.1', 'Host: a', service.authorization);
    await raw.receives('data: 1');
    const { keys, guard } = service;
    const rules = { keys, credentials: ['bearer'] as const, trust: new Networks([]), upstreams: service.upstreams };
    guard.prepareRules({ ...rules, requirements: always({ kind: 'all', permissions: [UPDATE] }) })();
    assert.equal((await get(service.url, { authorization: `Bearer ${service.secret}` })).status, 403);
    await raw.closed();
  });

  it('counts once what has begun without a key and needs one later', async () => {
    const created = await service.keys.create({ name: 'Later', roles: ['GUEST'], limits: ['100/h'] }, OPERATOR);
    // Open at the first check; after that, every other one requires a key.
    let asked = 0;
    const url = await service.beside({
      requirements: () => ({ allow: { kind: asked++ % 2 === 0 ? 'open' : 'key' } }),
    });
    const raw = connectRaw(url);
    raw.request('GET /read/events HTTP/1.1', 'Host: a', `Authorization: Bearer ${created.key}`);
    await raw.receives('data: 1');
    await until(() => asked >= 5);
    raw.socket.destroy();
    await service.keys.finishActivity();
    assert.equal((await service.keys.useOf([created.apiKey.id])).get(created.apiKey.id)?.uses, 1);
  });
});
