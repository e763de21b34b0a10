import assert from 'node:assert/strict';
import { OPERATOR } from '../../../../src/keys/authorization/principal.ts';
import {
  ALL_PROXIES,
  type AskedServer,
  ASKING,
  keyLine,
  routeTo,
  SITE,
  startAskedServer,
  withHeaders,
} from '../support/forward-auth.ts';

/**
 * The request of each proxy for a client that follows the advisory. `test/proxies` tests four of the proxies
 * themselves.
 */
describe('known bypasses of other software do not work here, by exact requests', () => {
  let server: AskedServer;
  let guest: string;
  before(async () => {
    const routes = [
      routeTo('/public/**', { kind: 'open' }),
      routeTo('/public/caf\u00e9/**', { kind: 'all', permissions: ['GRAFANA:DELETE_ANY'] }),
      routeTo('/public/re\u0301sume/**', { kind: 'all', permissions: ['GRAFANA:DELETE_ANY'] }),
      routeTo('/admin/**', { kind: 'all', permissions: ['GRAFANA:DELETE_ANY'] }),
      routeTo('/methods/*', { kind: 'key' }, { methods: ['GET', 'POST'] }),
      routeTo('/methods/*', { kind: 'all', permissions: ['GRAFANA:DELETE_ANY'] }, { methods: ['DELETE'] }),
    ];
    server = await startAskedServer({ config: { routes } });
    guest = keyLine((await server.keys.create({ name: 'Guest', roles: ['GUEST'] }, OPERATOR)).key);
  });
  after(() => server.stop());

  for (const proxy of ALL_PROXIES) {
    const ask = ASKING[proxy];
    const expectRefused = async (target: string, ...headers: string[]) => {
      for (const key of [[], [guest]]) {
        const { status } = await server.send(withHeaders(ask({ target }), ...key, ...headers));
        assert.ok(status === 401 || status === 403, `${proxy} ${target} ${headers.join()}: ${status}`);
      }
    };

    describe(`behind ${proxy}`, () => {
      it('GHSA-7x63-xv5r-3p2x: a client that says which request it makes', async () => {
        for (const name of ['X-Forwarded-Uri', 'X-Original-URI', 'X_Forwarded_Uri', 'X-Original-URL', 'X-Rewrite-URL'])
          await expectRefused('/admin/x', `${name}: /public/x`);
        for (const name of ['X-Forwarded-Host', 'X-Original-Host', 'X-Forwarded-Server', 'X-Host'])
          await expectRefused('/admin/x', `${name}: public.example.org`);
      });

      it('GHSA-7rh7-c77v-6434: a query that looks like an open path', async () => {
        for (const query of ['/public/x', 'a=/public/x', '?/public/', '/../public/x', '#/public/x'])
          await expectRefused(`/admin/x?${query}`);
      });

      it('a path whose characters have another form in Unicode than those of the route', async () => {
        for (const name of ['caf%C3%A9', 'cafe%CC%81', 'CAFE%CC%81', 'r%C3%A9sume', 're%CC%81sume'])
          await expectRefused(`/public/${name}/x`);
      });

      it('GHSA-pxq7-h93f-9jrg: a "#" in the path', async () => {
        for (const target of [
          '/admin/x#/public/y',
          '/public/x#/../../admin',
          '/public/x#',
          '/public/x%23/y',
          '#/public/x',
        ])
          await expectRefused(target);
      });

      it('GHSA-5hvv-m4w4-gf6v: the User-Agent of a health check', async () => {
        for (const agent of ['GoogleHC/1.0', 'kube-probe/1.30', 'ELB-HealthChecker/2.0', 'Consul Health Check'])
          for (const target of ['/admin/x', '/healthz', '/readyz', '/ping'])
            await expectRefused(target, `User-Agent: ${agent}`);
      });

      it('GHSA-p224-6x5r-fjpm: a path that is another one for the service', async () => {
        for (const target of [
          '/public/../admin/x',
          '/public/%2e%2e/admin/x',
          '/public/.%2e/admin/x',
          '/public/..%2fadmin/x',
          '/public%2f..%2fadmin/x',
          '/public/%252e%252e/admin/x',
          '/public/..\\admin/x',
          '/public/..%5cadmin/x',
          '/public/..;/admin/x',
          '/public/%c0%ae%c0%ae/admin/x',
          '/public/..%00/admin/x',
          '/./admin/x',
          '//admin/x',
          '/%61dmin/x',
          '/admin/',
          '/admin/x/',
          '/Admin/x',
        ])
          await expectRefused(target);
      });

      it('GHSA-vhr5-ggp3-qq85: another scheme', async () => {
        for (const line of [
          'X-Forwarded-Proto: http',
          'X_Forwarded_Proto: https',
          'X-Forwarded-Ssl: on',
          'Front-End-Https: on',
        ])
          await expectRefused('/admin/x', line);
      });

      it('headers that some services read as another request, if routes decide', async () => {
        for (const line of [
          'X-HTTP-Method-Override: DELETE',
          'X-HTTP-Method: DELETE',
          'x-method-override: DELETE',
          'X-Original-URL: /admin/x',
          'X-Rewrite-URL: /admin/x',
          'X_Rewrite_URL: /admin/x',
          'Script_Name: /public',
          'X-Script-Name: /public',
          'Path_Info: /admin/x',
        ])
          assert.equal((await server.send(withHeaders(ask({ target: '/public/x' }), line))).status, 403);
        const many = Array<string>(1100).fill('a: b');
        const behindMany = withHeaders(ask({ target: '/public/x' }), ...many, 'X-Rewrite-URL: /admin/x');
        assert.equal((await server.send(behindMany)).status, 403);
        assert.equal((await server.send(withHeaders(ask({ target: '/public/x' }), ...many))).status, 200);
        const required = withHeaders(ask({ target: '/public/x' }, '?key'), 'X-HTTP-Method-Override: DELETE', guest);
        assert.equal((await server.send(required)).status, 200);
      });

      it('a query that some services read as another method', async () => {
        const asked = (target: string, method: string) => withHeaders(ask({ target, method }), guest);
        assert.equal((await server.send(asked('/methods/x?a=_method', 'POST'))).status, 200);
        assert.equal((await server.send(asked('/methods/x', 'DELETE'))).status, 403);
        assert.equal((await server.send(asked('/methods/x?_method=DELETE', 'POST'))).status, 403);
      });

      it('no rule for the request is 403, which is no error to any proxy', async () => {
        for (const target of ['/elsewhere', '/', '/auth/nginx'])
          assert.equal((await server.send(withHeaders(ask({ target }), guest))).status, 403);
        assert.equal(
          (await server.send(withHeaders(ask({ target: '/admin/x', host: 'other.org' }), guest))).status,
          403,
        );
      });

      it('GHSA-6384-m2mw-rf54, GHSA-3q9r-p662-5j8m: headers of proxies that are no part of the contract', async () => {
        for (const line of [
          'X-Forwarded-Prefix: /public',
          'X-Forwarded-Port: 443',
          'X-Forwarded-Port: 80',
          'X-Forwarded-Path: /public/x',
          'X-Envoy-Original-Path: /public/x',
          'X-Replaced-Path: /public/x',
          `Forwarded: host=${SITE};proto=https;path=/public/x`,
        ])
          await expectRefused('/admin/x', line);
      });

      it('GHSA-x677-9fxg-v5c5, GHSA-f59h-q822-g45g: names that services fold into ours, even where all may pass', async () => {
        const ofOurs = ['X_Auth_Key_Id', 'x_auth_roles', 'X-Auth_Roles', 'X.Auth-Permission', 'X-Auth-Key~Name'];
        const ofOthers = [
          'Remote_User',
          'X_WEBAUTH_USER',
          'X-Forwarded_User',
          'X_Auth_Request_User',
          'Cf_Access_Client_Id',
        ];
        for (const name of [...ofOurs, ...ofOthers]) {
          const { status } = await server.send(withHeaders(ask({ target: '/public/x' }), `${name}: forged`));
          assert.deepEqual([name, status], [name, 403]);
        }
        for (const name of ['X_Auth_Token', 'X-Auth-Token', 'X-Auth-Key', 'X_Auth'])
          assert.equal((await server.send(withHeaders(ask({ target: '/public/x' }), `${name}: mine`))).status, 200);
      });

      it("GHSA-7r4p-vjf4-gxv4: identity of the client's own making, which the answer replaces, all of it", async () => {
        const forged = ['Key-Id', 'Key-Name', 'Roles', 'Permission'].map((name) => `X-Auth-${name}: forged`);
        const { status, headers } = await server.send(withHeaders(ask({ target: '/public/x' }), ...forged, ...forged));
        assert.equal(status, 200);
        assert.deepEqual(
          ['key-id', 'key-name', 'roles', 'permission'].map((name) => headers.get(`x-auth-${name}`)),
          ['', '', '', ''],
        );
      });
    });
  }

  it('authentik 6857: an endpoint without a described request refuses', async () => {
    for (const target of ['/auth/nginx', '/auth/caddy', '/auth/traefik', '/auth/haproxy', '/auth/envoy'])
      for (const key of [[], [guest]])
        assert.equal((await server.send({ target, headers: ['Host: localhost', ...key] })).status, 403);
  });
});
