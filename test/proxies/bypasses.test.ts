import assert from 'node:assert/strict';
import { type Answer, ask, askByHttp2, askToUpgrade, sendBytes, type Sent } from '../support/proxies/client.ts';
import { CONFIGURATIONS, SITE } from '../support/proxies/configurations.ts';
import { describeEachProxy } from '../support/proxies/describe.ts';
import { startGuardedSite } from '../support/proxies/guarded-site.ts';
import { needsPrograms } from '../support/skip.ts';

/** Statuses of refusals: ours, and those of proxies that cannot parse a request. */
const REFUSALS: ReadonlySet<number> = new Set([400, 401, 403, 404]);

describeEachProxy(
  'known bypasses of other software do not work here',
  { rule: 'routes' },
  (site, { program, title }) => {
    let guest: [string, string];
    before(async () => {
      guest = await site().keyWith({ roles: ['GUEST'] });
    });

    /** Sends a request with a guest's key and without one, and expects that neither reaches the service. */
    const expectRefused = async (sent: Sent) => {
      for (const headers of [[], [guest]]) {
        const before = site().service.requests();
        const { status } = await ask(site().port, { ...sent, headers: [...headers, ...(sent.headers ?? [])] });
        const seen = site().service.requests() - before;
        assert.ok(REFUSALS.has(status) && seen === 0, `${JSON.stringify(sent)}: ${status}, seen ${seen} times`);
      }
    };
    /** Headers about the caller that the service received, in any spelling. */
    const identityIn = ({ got }: Answer) =>
      got!.headers.filter(([name, value]) => /^x[^a-z\d]auth[^a-z\d]/.test(name) && value !== '');

    it('GHSA-7x63-xv5r-3p2x: a client that says which request it makes', async () => {
      for (const [name, value] of [
        ['X-Forwarded-Uri', '/public/x'],
        ['x-forwarded-uri', '/public/x'],
        ['X_Forwarded_Uri', '/public/x'],
        ['X-Original-URI', '/public/x'],
        ['X-Original-URL', `https://${SITE}/public/x`],
        ['X-Original-Method', 'OPTIONS'],
        ['X-Forwarded-Method', 'OPTIONS'],
        ['X-Forwarded-Host', 'public.example.org'],
        ['X-Rewrite-Url', '/public/x'],
        ['X-Replaced-Path', '/public/x'],
        ['X-Envoy-Original-Path', '/public/x'],
        ['Forwarded', 'host=public.example.org'],
      ] as const) {
        await expectRefused({ path: '/admin/x', headers: [[name, value]] });
        await expectRefused({
          path: '/admin/x',
          headers: [
            [name, value],
            [name, value],
          ],
        });
      }
    });

    it('GHSA-7rh7-c77v-6434: a query that looks like an open path', async () => {
      for (const query of ['/public/x', 'a=/public/x', '?/public/x', '/../public/x', 'x=1&/public/', '%2fpublic%2fx'])
        await expectRefused({ path: `/admin/x?${query}` });
    });

    it('GHSA-pxq7-h93f-9jrg: a "#" in the path', async () => {
      for (const path of [
        '/admin/x#/public/y',
        '/public/x#/../../admin/y',
        '/admin#',
        '/public/%23/../admin',
        '/public/a%23b',
      ])
        await expectRefused({ path });
    });

    it('GHSA-5hvv-m4w4-gf6v: the User-Agent of a health check', async () => {
      for (const agent of ['GoogleHC/1.0', 'kube-probe/1.30', 'ELB-HealthChecker/2.0', 'Prometheus/3.0', 'svc-api'])
        for (const path of ['/admin/x', '/healthz', '/readyz', '/ping'])
          await expectRefused({ path, headers: [['User-Agent', agent]] });
    });

    it('GHSA-p224-6x5r-fjpm: a path that is another one for the service', async () => {
      for (const path of [
        '/public/../admin/x',
        '/public/..;/admin/x',
        '/public/./../admin/x',
        '/public//../admin/x',
        '//admin/x',
        '/public/%2e%2e/admin/x',
        '/public/%2E./admin/x',
        '/public%2f..%2fadmin/x',
        '/public/..%2fadmin/x',
        '/public/%252e%252e/admin/x',
        '/public/..%5cadmin/x',
        '/public\\..\\admin/x',
        '/public/%c0%ae%c0%ae/admin/x',
        '/public/%u002e%u002e/admin/x',
        '/public/..%00/admin/x',
        '/admin;/x',
        '/%61dmin/x',
        '/admin%2fx',
        '/ADMIN/x',
      ])
        await expectRefused({ path });
    });

    it('GHSA-p224-6x5r-fjpm: the same by HTTP/2', async () => {
      for (const path of [
        '/public/../admin/x',
        '/public/%2e%2e/admin/x',
        '/public/..%2fadmin/x',
        '/public/..\\admin/x',
        '/public/..;/admin/x',
        '/public/x#/../../admin/x',
        '/admin/x?#/public/x',
        '//admin/x',
        'https://public.example.org/admin/x',
      ]) {
        const before = site().service.requests();
        const status = await askByHttp2(site().port, { path, headers: [guest] }).then(
          (answer) => answer.status,
          // Some proxies close the stream.
          (error: NodeJS.ErrnoException) => (error.code === 'ERR_HTTP2_STREAM_ERROR' ? 400 : assert.fail(error)),
        );
        assert.ok(REFUSALS.has(status) && site().service.requests() === before, `${path}: ${status}`);
      }
    });

    it('GHSA-vhr5-ggp3-qq85: another scheme', async () => {
      for (const scheme of ['http', 'https', 'ws', 'file', ''])
        await expectRefused({ path: '/admin/x', headers: [['X-Forwarded-Proto', scheme]] });
    });

    it('headers that some services read as another request', async () => {
      for (const name of [
        'X-HTTP-Method-Override',
        'X-HTTP-Method',
        'X-Method-Override',
        'X-Original-URL',
        'X-Rewrite-URL',
        'X-Script-Name',
      ]) {
        await expectRefused({ path: '/public/x', headers: [[name, 'DELETE']] });
        // Proxies that do not forward such names delete them.
        const alias = name.replaceAll('-', '_');
        const { status, got } = await ask(site().port, { path: '/public/x', headers: [[alias, 'DELETE']] });
        const isDeleted = status === 200 && got!.headers.every(([, value]) => value !== 'DELETE');
        assert.ok(isDeleted || status === 403, `${alias}: ${status}`);
      }
    });

    it('a request that no rule is for is refused, not failed', async () => {
      for (const path of ['/elsewhere', '/', '/auth/nginx', '/svc-api', '/graphql', '/auth/caddy?key']) {
        for (const headers of [[], [guest]]) {
          const before = site().service.requests();
          const { status } = await ask(site().port, { path, headers });
          assert.deepEqual([path, site().service.requests()], [path, before]);
          // nginx's internal location is invisible to clients.
          assert.ok(status === 403 || (path === '/svc-api' && status === 404), `${path}: ${status}`);
        }
      }
    });

    it('GHSA-6384-m2mw-rf54: X-Forwarded-Prefix', async () => {
      for (const prefix of ['/public', '/public/', 'public'])
        await expectRefused({ path: '/admin/x', headers: [['X-Forwarded-Prefix', prefix]] });
    });

    it('GHSA-3q9r-p662-5j8m: X-Forwarded-Port', async () => {
      for (const value of ['443', '80', '8443'])
        await expectRefused({
          path: '/admin/x',
          headers: [
            ['X-Forwarded-Port', value],
            ['X-Forwarded-Proto', 'https'],
          ],
        });
    });

    it('GHSA-x677-9fxg-v5c5, GHSA-f59h-q822-g45g: names that services fold into ours', async () => {
      for (const name of [
        'X_Auth_Key_Id',
        'x_auth_roles',
        'X-Auth_Roles',
        'X_Auth-Permission',
        'X-Auth-Key_Name',
        'X.Auth.Roles',
        'X-Auth-Key!Id',
      ]) {
        const headers = [[name, 'ADMIN']] as const;
        const before = site().service.requests();
        const answer = await ask(site().port, { path: '/public/x', headers });
        // The proxy deletes it. Caddy cannot delete all of them, so svc-api refuses the others.
        const isDeleted = !name.startsWith('X.');
        const isRefused = program === 'caddy' && !isDeleted;
        assert.deepEqual([name, answer.status], [name, isRefused ? 403 : 200]);
        assert.equal(site().service.requests() - before, isRefused ? 0 : 1);
        if (!isRefused) assert.deepEqual([name, identityIn(answer)], [name, []]);
      }
    });

    it('GHSA-7r4p-vjf4-gxv4: identity headers forged by the client, with and without a required key', async () => {
      const { key, id } = await site().create({ name: 'Reader', permissions: [site().may('READ')] });
      const forged = ['X-Auth-Key-Id', 'X-Auth-Key-Name', 'X-Auth-Roles', 'X-Auth-Permission'].flatMap((name) => [
        [name, 'forged'] as const,
        [name.toUpperCase(), 'forged too'] as const,
      ]);
      const open = await ask(site().port, { path: '/public/x', headers: forged });
      assert.deepEqual(identityIn(open), []);
      const guarded = await ask(site().port, {
        path: '/api/x',
        headers: [['Authorization', `Bearer ${key}`], ...forged],
      });
      assert.deepEqual(identityIn(guarded), [
        ['x-auth-key-id', id],
        ['x-auth-key-name', 'Reader'],
        ['x-auth-permission', site().may('READ')],
      ]);
    });

    it('a header that names a person', async () => {
      const names = [
        'Remote-User',
        'remote-groups',
        'X-Remote-User',
        'X-WEBAUTH-USER',
        'X-Forwarded-User',
        'X-Forwarded-Email',
        'X-Auth-Request-User',
        'X-Authentik-Username',
        'Cf-Access-Authenticated-User-Email',
        'Tailscale-User-Login',
      ];
      const { got } = await ask(site().port, { path: '/public/x', headers: names.map((name) => [name, 'forged']) });
      assert.ok(
        got!.headers.every(([, value]) => value !== 'forged'),
        JSON.stringify(got!.headers),
      );
    });

    it('another protocol than WebSocket, which could carry requests past the check', async () => {
      const http2 = ['Connection: Upgrade, HTTP2-Settings', 'HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA'];
      const preflight = ['Origin: https://app.example.org', 'Access-Control-Request-Method: POST'];
      for (const [asked, ...headers] of [
        ['GET /public/x', 'Upgrade: h2c', ...http2],
        ['GET /public/x', 'Upgrade: websocket, h2c', ...http2],
        ['GET /public/x', 'Upgrade: h2c, websocket', ...http2],
        ['GET /public/x', 'Upgrade: websocket', 'Upgrade: h2c', ...http2],
        ['GET /public/x', 'Upgrade: h2c', 'Upgrade: websocket', ...http2],
        ['GET /public/x', 'Upgrade: tunnel', 'Connection: Upgrade'],
        ['OPTIONS /api/x', 'Upgrade: websocket', 'Connection: Upgrade', ...preflight],
        ['POST /public/x', 'Upgrade: websocket', 'Connection: Upgrade', 'Content-Length: 0'],
      ] as const) {
        const [socket, answer] = await askToUpgrade(site().port, asked, headers);
        // An upgrade to WebSocket allows no more than a page does.
        const protocol = /^HTTP\/1\.1 101 [^]*\r\nupgrade: ([^\r]*)/i.exec(answer)?.[1];
        const isWebSocket = asked.startsWith('GET') && protocol === 'websocket' && !answer.includes('h2c');
        // The guard also forwards other protocols except HTTP, because it sees the upgrade.
        const isTunnel = title === 'examples/guard' && protocol === 'tunnel';
        assert.ok(protocol === undefined || isWebSocket || isTunnel, `${asked} ${headers.join()}: ${answer}`);
        socket.destroy();
      }
    });

    it('a Connection that names the headers of identity, which are then taken out', async () => {
      const { key, id } = await site().create({ permissions: [site().may('READ')] });
      for (const named of [
        'X-Auth-Key-Id, X-Auth-Roles',
        'x-auth-key-id',
        'close, X-Auth-Key-Id',
        'X-Auth-Key-Id,x-a',
      ]) {
        const headers = [
          ['Authorization', `Bearer ${key}`],
          ['Connection', named],
        ] as const;
        const { status, got } = await ask(site().port, { path: '/api/x', headers });
        const ids = got?.headers.filter(([name]) => name === 'x-auth-key-id').map(([, value]) => value);
        const lists = got?.headers.filter(([name, value]) => name === 'connection' && /x-/i.test(value)) ?? [];
        assert.ok(status === 400 || (ids?.join() === id && lists.length === 0), `${named}: ${status} ${ids?.join()}`);
      }
    });

    it('a target in absolute form, and two of Host', async () => {
      const head = ['Connection: close', guest.join(': '), '', ''];
      for (const lines of [
        [`GET https://public.example.org/admin/x HTTP/1.1`, `Host: ${SITE}`],
        [`GET https://${SITE}/admin/x HTTP/1.1`, 'Host: public.example.org'],
        [`GET /admin/x HTTP/1.1`, `Host: ${SITE}`, 'Host: public.example.org'],
        [`GET /admin/x HTTP/1.1`, `Host: ${SITE}, public.example.org`],
        [`GET /admin/x HTTP/1.1`, `Host: public.example.org@${SITE}`],
        [`OPTIONS * HTTP/1.1`, `Host: ${SITE}`],
      ]) {
        const before = site().service.requests();
        await sendBytes(site().port, [...lines, ...head].join('\r\n'));
        assert.equal(site().service.requests(), before, lines.join());
      }
    });
  },
);

describe('a client of Caddy whose configuration lost its "?"', () => {
  it('chooses nothing by its query, which Caddy then appends to the URL', async function () {
    needsPrograms(this, 'caddy');
    const configuration = CONFIGURATIONS.find(({ title }) => title === 'examples/caddy')!;
    // Without and with routes.
    for (const [rule, edits] of [
      ['resource', { '?resource=GRAFANA': '' }],
      ['routes', { 'uri /auth/caddy?\n': 'uri /auth/caddy\n' }],
    ] as const) {
      const site = await startGuardedSite(configuration, { rule, edits });
      const guest = await site.keyWith({ roles: ['GUEST'] });
      for (const query of [
        'permission=ME:READ_OWN',
        'any=ME:READ_OWN',
        'resource=ME',
        'methods=any',
        'key',
        'a=b',
        '',
      ]) {
        const { status } = await ask(site.port, { path: `/admin/x?${query}`, headers: [guest] });
        assert.deepEqual([rule, query, status], [rule, query, 403]);
      }
      assert.equal(site.service.requests(), 0);
      if (rule === 'routes') assert.equal((await ask(site.port, { path: '/public/x?a=b' })).status, 200);
      await site.stop();
    }
  });
});
