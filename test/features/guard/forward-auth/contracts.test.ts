import assert from 'node:assert/strict';
import { OPERATOR } from '../../../../src/keys/authorization/principal.ts';
import {
  ALL_PROXIES,
  type AskedServer,
  ASKING,
  keyLine,
  type Proxy,
  routeTo,
  SITE,
  startAskedServer,
  withHeaders,
} from '../support/forward-auth.ts';
import { withoutRequestId } from '../../../support/log.ts';

/** The headers in which each proxy describes the original request. */
const SAYING: Readonly<Record<Proxy, readonly string[]>> = {
  nginx: ['X-Original-Method', 'X-Original-URI', 'X-Forwarded-Host'],
  caddy: ['X-Forwarded-Method', 'X-Forwarded-Proto', 'X-Forwarded-Host', 'X-Forwarded-Uri'],
  traefik: ['X-Forwarded-Method', 'X-Forwarded-Proto', 'X-Forwarded-Host', 'X-Forwarded-Uri'],
  haproxy: ['X-Forwarded-Method', 'X-Forwarded-Proto', 'X-Forwarded-Host', 'X-Forwarded-Uri'],
  envoy: ['Host'],
};

const ROUTES = [
  routeTo('/public/**', { kind: 'open' }),
  routeTo('/any/**', { kind: 'key' }),
  routeTo('/api/**', { kind: 'all', permissions: ['GRAFANA:READ_ANY'] }, { methods: ['GET'] }),
];

for (const proxy of ALL_PROXIES) {
  const ask = ASKING[proxy];

  describe(`a request that ${proxy} asks about`, () => {
    let server: AskedServer;
    let id: string;
    let key: string;
    before(async () => {
      server = await startAskedServer({ config: { routes: ROUTES } });
      const created = await server.keys.create(
        { name: 'Läufer', roles: ['GUEST'], permissions: ['GRAFANA:READ_ANY'] },
        OPERATOR,
      );
      [id, key] = [created.apiKey.id, keyLine(created.key)];
    });
    after(() => server.stop());

    const identityIn = (headers: Headers) =>
      ['key-id', 'key-name', 'roles', 'permission'].map((name) => headers.get(`x-auth-${name}`));

    it('passes by the routes, with all that is known of its key', async () => {
      const { status, headers, body } = await server.send(withHeaders(ask({ target: '/api/x?y=1' }), key));
      assert.deepEqual([status, body], [200, '']);
      assert.deepEqual(identityIn(headers), [id, 'L%C3%A4ufer', 'GUEST', 'GRAFANA:READ_ANY']);
      assert.deepEqual([headers.get('cache-control'), headers.get('location')], ['no-store', null]);
      for (const [asked, expected] of [
        [{ method: 'POST', target: '/api/x' }, 403],
        [{ target: '/other' }, 403],
        [{ target: '/api/x', host: 'other.example.org' }, 403],
        [{ target: '/any/x' }, 200],
        [{ target: '/any/x?/public/' }, 200],
      ] as const)
        assert.deepEqual([asked, (await server.send(withHeaders(ask(asked), key))).status], [asked, expected]);
      assert.equal((await server.send(ask({ target: '/any/x' }))).status, 401);
    });

    it('has all identity headers on an open route, and all are empty', async () => {
      const { status, headers } = await server.send(withHeaders(ask({ target: '/public/x' }), key));
      assert.deepEqual([status, identityIn(headers)], [200, ['', '', '', '']]);
    });

    for (const name of SAYING[proxy]) {
      it(`is refused if ${name} is missing or there twice`, async () => {
        const { headers, ...asking } = ask({ target: '/public/x' });
        const isIt = (line: string) => line.toLowerCase().startsWith(`${name.toLowerCase()}:`);
        const [own, ...others] = headers.filter(isIt);
        assert.deepEqual(others, []);
        const without = await server.send({ ...asking, headers: headers.filter((line) => !isIt(line)) });
        const twice = await server.send({ ...asking, headers: [...headers, own!.replace(name, name.toUpperCase())] });
        assert.deepEqual([without.status, twice.status], [403, 403]);
      });
    }

    it('is not what other headers say', async () => {
      const foreign = [
        'X-Original-Method: GET',
        'X-Original-URI: /public/x',
        'X-Forwarded-Method: GET',
        'X-Forwarded-Proto: https',
        'X-Forwarded-Host: public.example.org',
        'X-Forwarded-Uri: /public/x',
      ].filter((line) => !SAYING[proxy].some((name) => line.startsWith(`${name}:`)));
      assert.equal((await server.send(withHeaders(ask({ target: '/api/x' }), ...foreign))).status, 401);
      assert.equal((await server.send(withHeaders(ask({ target: '/api/x' }), ...foreign, key))).status, 200);
    });

    it('is refused where routes decide if its path is not canonical, and passes where no path matters', async () => {
      for (const target of [
        '/public/../api',
        '/public/x#/y',
        '/public/%2e%2e/api',
        '/public//x',
        '/public/x;y',
        '/public/x?a#b',
        '/public/%00',
        '/@acme%2Ftool',
        '/projects/a%2Fb',
        '//',
        '/%',
        '/%ff',
      ])
        for (const [query, expected] of [
          ['', 403],
          ['?permission=GRAFANA:READ_ANY', 200],
          ['?resource=GRAFANA', 200],
          ['?key', 200],
        ] as const) {
          const { status } = await server.send(withHeaders(ask({ target }, query), key));
          assert.deepEqual([target, query, status], [target, query, expected]);
        }
    });

    it('is refused if its host is invalid, whatever is required', async () => {
      for (const query of ['', '?permission=GRAFANA:READ_ANY'])
        for (const host of ['a@b', `${SITE}, other`, ''])
          assert.equal((await server.send(withHeaders(ask({ target: '/public/x', host }, query), key))).status, 403);
    });
  });
}

describe('an endpoint for proxies', () => {
  let server: AskedServer;
  before(async () => (server = await startAskedServer({ config: { routes: ROUTES } })));
  after(() => server.stop());

  it('takes a method in upper case, a scheme of the web, and a path', async () => {
    const ask = ASKING.traefik({ target: '/public/x' });
    const replaced = (name: string, value: string) => ({
      ...ask,
      headers: ask.headers.map((line) => (line.startsWith(`${name}:`) ? `${name}: ${value}` : line)),
    });
    for (const [name, value, expected] of [
      ['X-Forwarded-Proto', 'http', 200],
      ['X-Forwarded-Proto', 'wss', 200],
      ['X-Forwarded-Proto', 'gopher', 403],
      ['X-Forwarded-Proto', 'https, http', 403],
      ['X-Forwarded-Proto', '', 403],
      ['X-Forwarded-Method', 'get', 403],
      ['X-Forwarded-Method', 'GET, POST', 403],
      ['X-Forwarded-Method', '', 403],
      ['X-Forwarded-Uri', 'public/x', 403],
      ['X-Forwarded-Uri', '*', 403],
      ['X-Forwarded-Uri', '', 403],
      ['X-Forwarded-Uri', '/public/\xff', 403],
      ['X-Forwarded-Uri', `https://${SITE}/public/x`, 403],
    ] as const)
      assert.deepEqual([name, value, (await server.send(replaced(name, value))).status], [name, value, expected]);
  });

  for (const target of [
    '/auth',
    '/auth/',
    '/auth?key',
    '/auth/unknown',
    '/auth/constructor',
    '/auth/nginx/',
    '/auth/nginx/x',
    '/auth/NGINX',
    '/auth/%6eginx',
    '/auth//nginx',
    '/auth/./nginx',
    '/auth/apache',
    '/auth/envoy',
    '/auth/envoy?key',
    '/auth/envoyer/public/x',
    '/auth/envoy-/public/x',
  ])
    it(`is not at ${target}`, async () => {
      const { headers } = ASKING.nginx({ target: '/public/x' });
      assert.equal((await server.send({ target, headers })).status, 403);
    });

  it('logs the reason of a refusal, for the operator only', async () => {
    const { target, headers } = ASKING.traefik({ target: '/public/../x' });
    const own = await startAskedServer({ config: { routes: ROUTES } });
    const bodies = [
      await own.send({ target: '/auth/treafik', headers }),
      await own.send({ target, headers: headers.slice(0, -3) }),
      await own.send({ target, headers: [...headers, 'X-FORWARDED-HOST: x'] }),
      await own.send({ target, headers }),
      await own.send({ target, headers: [...headers, 'X_Auth_Roles: ADMIN'] }),
      await own.send(ASKING.traefik({ target: '/elsewhere?secret' })),
    ].map(({ body }) => body);
    const told = { errors: [{ message: 'This request is not allowed.', extensions: { code: 'FORBIDDEN' } }] };
    assert.deepEqual(new Set(bodies), new Set([JSON.stringify(told)]));
    assert.deepEqual(
      own.lines.map(({ level, fields, message }) => ({ level, message, ...withoutRequestId(fields) })),
      [
        ['unknown endpoint', 'there is none at /auth/treafik'],
        ['contract', 'X-Forwarded-Uri is missing'],
        ['contract', 'X-Forwarded-Host is repeated'],
        ['no route', `the path has a "." or ".." segment: GET ${SITE}/public/../x`],
        ['forged', 'the client has sent X_Auth_Roles'],
        ['no route', `no route matches: GET ${SITE}/elsewhere`],
      ].map(([reason, detail]) => ({
        level: 'info',
        message: 'forward-auth refused',
        reason,
        detail,
        address: '203.0.113.7',
      })),
    );
    await own.stop();
  });
});
