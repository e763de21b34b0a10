import assert from 'node:assert/strict';
import { byRoutes } from '../../../src/features/guard/access.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { createRouter, type Route } from '../../../src/features/routes/router.ts';
import {
  ALL_PROXIES,
  type AskedServer,
  ASKING,
  routeTo,
  SITE,
  startAskedServer,
  withHeaders,
} from './support/forward-auth.ts';
import { type GuardedService, startGuarded } from './support/guard.ts';
import { connectRaw } from '../../support/raw-connection.ts';

const HANDSHAKE = ['Upgrade: websocket', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', 'Sec-WebSocket-Version: 13'];

/** Browser headers in a request to `https://grafana.example.org`, and whether a Basic key is accepted with them. */
const SAID: readonly (readonly [lines: readonly string[], passes: boolean])[] = [
  [[], true],
  [['Sec-Fetch-Site: same-origin'], true],
  [['Sec-Fetch-Site: none'], true],
  [['Sec-Fetch-Site: same-site'], false],
  [['Sec-Fetch-Site: cross-site'], false],
  [['Sec-Fetch-Site: '], false],
  [['Sec-Fetch-Site: same-origin', 'Sec-Fetch-Site: cross-site'], false],
  [['Sec-Fetch-Site: cross-site', `Origin: https://${SITE}`], false],
  [['Sec-Fetch-Site: same-origin', `Origin: https://${SITE}:8443`], true],
  [['Sec-Fetch-Site: same-origin', 'Origin: https://evil.example'], false],
  [[`Origin: https://${SITE}`], true],
  [[`Origin: https://${SITE}:443`], true],
  [[`Origin: http://${SITE}`], true],
  [['Origin: https://GRAFANA.example.org'], true],
  [[`Origin: https://${SITE}:8443`], false],
  [[`Origin: https://evil.${SITE}`], false],
  [['Origin: https://example.org'], false],
  [['Origin: https://evil.example'], false],
  [['Origin: null'], false],
  [['Origin: '], false],
  [[`Origin: ${SITE}`], false],
  [[`Origin: chrome-extension://${SITE}`], false],
  [[`Origin: https://${SITE}`, 'Origin: https://evil.example'], false],
];

describe('a request of another site', () => {
  let server: AskedServer;
  let service: GuardedService;
  let secret: string;
  let keys: Readonly<Record<'basic' | 'bearer' | 'header', string>>;
  const credentials = ['bearer', 'basic', { header: 'x-api-key' }] as const;
  const routes: Route[] = [
    routeTo('/closed', { kind: 'key' }),
    routeTo('/shared', { kind: 'key' }, { crossSiteAllowed: true }),
    routeTo('/open', { kind: 'open' }),
  ];
  const linesOf = (key: string) => ({
    basic: `Authorization: Basic ${Buffer.from(`any:${key}`).toString('base64')}`,
    bearer: `Authorization: Bearer ${key}`,
    header: `X-Api-Key: ${key}`,
  });
  before(async () => {
    server = await startAskedServer({ config: { credentials, routes } });
    secret = (await server.keys.create({ name: 'Person', roles: ['ADMIN'] }, OPERATOR)).key;
    keys = linesOf(secret);
    service = await startGuarded((_, outgoing) => outgoing.end('passed'));
    service.upstream.on('upgrade', (_, socket) =>
      socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n'),
    );
  });
  after(async () => {
    await server.stop();
    await service.stop();
  });

  for (const proxy of ALL_PROXIES) {
    const ask = async (method: string, lines: readonly string[], query = '?resource=GRAFANA', target = '/closed') =>
      server.send(withHeaders(ASKING[proxy]({ method, target }, query), ...lines));

    it(`that ${proxy} asks about does nothing by a key that a browser sends by itself`, async () => {
      for (const [lines, passes] of SAID) {
        const statuses: number[] = [];
        for (const method of ['POST', 'PUT', 'DELETE'])
          statuses.push((await ask(method, [...lines, keys.basic])).status);
        statuses.push((await ask('GET', [...lines, ...HANDSHAKE.slice(1), keys.basic])).status);
        assert.deepEqual([lines, statuses], [lines, Array(4).fill(passes ? 200 : 403)]);
        for (const key of [keys.bearer, keys.header]) assert.equal((await ask('POST', [...lines, key])).status, 200);
        for (const method of ['GET', 'HEAD', 'OPTIONS'])
          assert.equal((await ask(method, [...lines, keys.basic])).status, 200, method);
      }
    });

    it(`that ${proxy} asks about gets the reason, and passes if routes allow it`, async () => {
      const cross = ['Sec-Fetch-Site: cross-site', keys.basic];
      for (const query of ['?permission=GRAFANA:UPDATE_ANY', '?key', '?any=GRAFANA:UPDATE_ANY', '']) {
        const { status, body } = await ask('POST', cross, query);
        assert.deepEqual([status, /"A page of another site sent this request/.test(body)], [403, true], query);
      }
      assert.equal((await ask('POST', cross, '', '/shared')).status, 200);
      assert.equal((await ask('POST', cross, '', '/open')).status, 200);
      assert.equal((await ask('POST', ['Sec-Fetch-Site: cross-site'], '')).status, 401);
    });
  }

  it('does nothing behind a guard by a key that a browser sends by itself', async () => {
    const own = linesOf(service.secret);
    const permissions = await service.beside({ credentials, requirements: () => ({ allow: { kind: 'key' } }) });
    const byRoute = await service.beside({ credentials, requirements: byRoutes(createRouter(routes)) });
    const send = async (url: string, method: string, path: string, lines: readonly string[]) => {
      const raw = connectRaw(url);
      const body = method === 'POST' ? ['Content-Length: 0'] : [];
      raw.request(`${method} ${path} HTTP/1.1`, `Host: ${SITE}`, ...body, ...lines);
      const text = await raw.receives('\r\n\r\n');
      raw.socket.destroy();
      return Number(text.slice(9, 12));
    };
    for (const [lines, passes] of SAID)
      for (const url of [permissions, byRoute]) {
        const handshake = [...lines, 'Connection: upgrade', ...HANDSHAKE];
        assert.equal(await send(url, 'POST', '/closed', [...lines, own.basic]), passes ? 200 : 403, lines.join());
        assert.equal(await send(url, 'GET', '/closed', [...handshake, own.basic]), passes ? 101 : 403, lines.join());
        assert.equal(await send(url, 'GET', '/closed', [...lines, own.basic]), 200);
        assert.equal(await send(url, 'POST', '/closed', [...lines, own.bearer]), 200);
        assert.equal(await send(url, 'GET', '/closed', [...handshake, own.header]), 101);
      }
    const cross = ['Sec-Fetch-Site: cross-site', own.basic];
    assert.equal(await send(byRoute, 'POST', '/shared', cross), 200);
    assert.equal(await send(byRoute, 'POST', '/open', cross), 200);
  });
});
