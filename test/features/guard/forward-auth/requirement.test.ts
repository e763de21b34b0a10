import assert from 'node:assert/strict';
import type { Permission } from '../../../../src/keys/permissions/catalog.ts';
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

const [READ, UPDATE]: Permission[] = ['GRAFANA:READ_ANY', 'GRAFANA:UPDATE_ANY'];

describe("the requirement in a proxy's configuration", () => {
  let server: AskedServer;
  const keys: Record<string, string> = {};
  before(async () => {
    server = await startAskedServer();
    for (const [name, permissions] of Object.entries({
      reader: [READ],
      editor: [READ, UPDATE],
      other: ['ME:READ_OWN'],
    }))
      keys[name] = keyLine(
        (await server.keys.create({ name, permissions: permissions as Permission[] }, OPERATOR)).key,
      );
  });
  after(() => server.stop());

  const statuses = (query: string, proxy: (typeof ALL_PROXIES)[number] = 'nginx') =>
    Promise.all(
      ['reader', 'editor', 'other', 'nobody'].map(async (name) => {
        const asking = ASKING[proxy]({ target: '/x' }, query);
        return (await server.send(name === 'nobody' ? asking : withHeaders(asking, keys[name]!))).status;
      }),
    );

  for (const proxy of ALL_PROXIES) {
    it(`is in the URL that ${proxy} asks: a permission, all or any of several, or any key`, async () => {
      for (const [query, expected] of [
        [`?permission=${READ}`, [200, 200, 403, 401]],
        [`?permission=${READ}&permission=${UPDATE}`, [403, 200, 403, 401]],
        [`?any=${UPDATE}&any=${READ}`, [200, 200, 403, 401]],
        [`?any=${UPDATE}`, [403, 200, 403, 401]],
        ['?key', [200, 200, 200, 401]],
      ] as const)
        assert.deepEqual([query, await statuses(query, proxy)], [query, expected]);
    });
  }

  it('may be written in lower case, percent-encoded, or with spaces', async () => {
    for (const query of [
      '?permission=grafana:read_any',
      '?permission=GRAFANA%3AREAD_ANY',
      '?permission=%20GRAFANA:READ_ANY+',
    ])
      assert.deepEqual([query, await statuses(query)], [query, [200, 200, 403, 401]]);
    assert.deepEqual(await statuses('?key='), [200, 200, 200, 401]);
  });

  it('is reported to the service: the required permissions', async () => {
    const permissionOf = async (query: string) =>
      (await server.send(withHeaders(ASKING.nginx({}, query), keys['editor']!))).headers.get('x-auth-permission');
    assert.equal(await permissionOf(`?permission=${READ}&permission=${UPDATE}`), `${READ},${UPDATE}`);
    assert.equal(await permissionOf(`?any=${UPDATE}&any=${READ}`), UPDATE);
    assert.equal(await permissionOf('?key'), '');
  });

  it('is reported to a key that lacks it', async () => {
    const { status, headers, body } = await server.send(
      withHeaders(ASKING.nginx({}, `?permission=${READ}&permission=${UPDATE}`), keys['other']!),
    );
    assert.equal(status, 403);
    assert.equal(
      headers.get('www-authenticate'),
      `Bearer realm="svc-api", error="insufficient_scope", scope="${READ} ${UPDATE}"`,
    );
    const [error] = (JSON.parse(body) as { errors: { message: string }[] }).errors;
    assert.equal(error!.message, `This key lacks ${READ} and ${UPDATE}.`);
  });

  for (const [query, detail] of [
    ['?permission=GRAFANA:REED_ANY', /"REED_ANY" is not an action\. Did you mean READ_ANY/],
    ['?permission=', /permissions is empty/],
    ['?permission', /permissions is empty/],
    ['?any=', /permissions is empty/],
    [`?permission=${READ}&any=${UPDATE}`, /has permission and any: write permission=/],
    [`?permission=${READ}&key`, /has permission and key/],
    [`?permision=${READ}`, /"permision" in the endpoint's URL is unknown: write permission=/],
    [`?permission=${READ}&x=1`, /"x" in the endpoint's URL is unknown/],
    ['?=', /"" in the endpoint's URL is unknown/],
    ['?%zz', /"%zz" in the endpoint's URL is unknown/],
    ['?resource=', /"" is not a resource/],
    ['?resource=GRAFNA', /"GRAFNA" is not a resource\. Did you mean GRAFANA/],
    ['?resource=GRAFANA:READ_ANY', /"GRAFANA:READ_ANY" is not a resource/],
    ['?resource=GRAFANA&resource=DOCKER', /has several resources/],
    ['?resource=GRAFANA&permission=GRAFANA:READ_ANY', /has resource and permission/],
    ['?resource=GRAFANA&key', /has resource and key/],
    ['?resource=GRAFANA&methods=any', /has methods=any with resource/],
    ['?key&methods=any', /has methods=any with key/],
    ['?methods=any', /has methods=any with nothing/],
    ['?permission=GRAFANA:READ_ANY&methods=', /has methods= with permission/],
    ['?permission=GRAFANA:READ_ANY&methods=all', /has methods=all with permission/],
    ['?permission=GRAFANA:READ_ANY&methods=any&methods=any', /has methods=any,any with permission/],
    ['?permission=GRAFANA:READ_ANY&method=any', /"method" in the endpoint's URL is unknown/],
    ['', /declare routes in svc-api.yaml, or add \?permission=RESOURCE:ACTION to the URL that the proxy asks/],
  ] as const) {
    it(`lets no request pass, and logs why, if the URL has ${query === '' ? 'none' : `"${query}"`}`, async () => {
      const own = await startAskedServer();
      const { key: secret } = await own.keys.create({ name: 'Admin', roles: ['ADMIN'] }, OPERATOR);
      const { status, body } = await own.send(withHeaders(ASKING.nginx({}, query), keyLine(secret)));
      assert.deepEqual([status, body.includes('permission')], [403, false]);
      const [line, ...more] = own.lines;
      assert.match((line!.fields as { detail: string }).detail, detail);
      assert.deepEqual(more, []);
      await own.stop();
    });
  }

  it('is the same for each path: routes are not asked', async () => {
    const routes = [routeTo('/**', { kind: 'open' })];
    const own = await startAskedServer({ config: { routes } });
    assert.equal((await own.send(ASKING.nginx({ target: '/x' }))).status, 200);
    assert.equal((await own.send(ASKING.nginx({ target: '/x' }, `?permission=${READ}`))).status, 401);
    await own.stop();
  });

  describe('is not what the client says', () => {
    it('by its query, which a proxy may append to a URL without one', async () => {
      for (const query of [`permission=ME:READ_OWN`, 'any=ME:READ_OWN', 'key', 'x=1&key', 'permission=%zz']) {
        const asking = ASKING.caddy({ target: `/x?${query}` }, `?${query}`);
        assert.deepEqual([query, (await server.send(withHeaders(asking, keys['other']!))).status], [query, 403]);
      }
    });

    it('by its query, which Envoy appends behind the path', async () => {
      const asking = ASKING.envoy({ target: `/x?permission=${READ}` }, `?permission=${READ}`);
      assert.equal((await server.send(withHeaders(asking, keys['reader']!))).status, 200);
      assert.equal((await server.send(withHeaders(asking, keys['other']!))).status, 403);
    });

    it('by its query after that of the URL', async () => {
      const asking = ASKING.caddy({ target: '/x?any=ME:READ_OWN' }, `?any=${READ}&any=ME:READ_OWN`);
      assert.equal((await server.send(withHeaders(asking, keys['other']!))).status, 403);
    });

    it('so its query does not get in the way of routes', async () => {
      const own = await startAskedServer({ config: { routes: [routeTo('/x', { kind: 'open' })] } });
      for (const query of ['a=b', '', 'permissions=1', '%zz', '?'])
        assert.equal((await own.send(ASKING.caddy({ target: `/x?${query}` }, `?${query}`))).status, 200);
      assert.equal((await own.send(ASKING.caddy({ target: '/x?key' }, `?key`))).status, 403);
      await own.stop();
    });

    it('by a path that Envoy appends, even one that looks like a prefix', async () => {
      const routes = [routeTo('/envoy/x', { kind: 'open' }), routeTo('/key/envoy/x', { kind: 'open' })];
      const own = await startAskedServer({ config: { routes } });
      for (const target of ['/envoy/x', '/key/envoy/x'])
        assert.equal((await own.send(ASKING.envoy({ target }))).status, 200);
      await own.stop();
    });

    it('by a path that Envoy appends', async () => {
      const { headers } = ASKING.envoy({ target: '/x' });
      for (const target of [
        '/auth/envoy/permission=ME:READ_OWN/envoy/x',
        '/auth/envoy/key/envoy/x',
        '/auth/envoy/../key/envoy/x',
        '/auth/envoy/x?key',
        '/auth/envoy?key',
        '/auth/envoykey/x',
        '/auth/envoy-key/envoy/x',
      ])
        assert.deepEqual(
          [target, (await server.send({ target, headers: [...headers, keys['other']!] })).status],
          [target, 403],
        );
    });
  });
});
