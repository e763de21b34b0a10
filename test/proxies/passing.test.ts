import assert from 'node:assert/strict';
import { Agent } from 'node:https';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { ask, askByHttp2, askForWebSocket } from '../support/proxies/client.ts';
import { describeEachProxy, withKey } from '../support/proxies/describe.ts';
import { startGuardedSite } from '../support/proxies/guarded-site.ts';
import type { Got } from '../support/proxies/service.ts';
import { needsPrograms } from '../support/skip.ts';

/** The values of a header that the service got. */
const valuesOf = ({ headers }: Got, wanted: string) =>
  headers.filter(([name]) => name === wanted).map(([, value]) => value);

describeEachProxy('a service', {}, (site, name) => {
  let secret: string;
  let id: string;
  before(async () => {
    const created = await site().keys.create(
      { name: 'Läufer 7', roles: ['GUEST'], permissions: ['GRAFANA:READ_ANY'] },
      OPERATOR,
    );
    [secret, id] = [created.key, created.apiKey.id];
  });
  const port = () => site().proxy.port;

  it('is told which key makes a request, and gets all of it but the key', async () => {
    const { status, got } = await ask(port(), {
      path: '/api/dashboards/7?from=now-1h&to=%20',
      headers: [withKey(secret), ['X-Custom', 'kept']],
    });
    assert.equal(status, 200);
    assert.deepEqual([got!.method, got!.url], ['GET', '/api/dashboards/7?from=now-1h&to=%20']);
    const identity = ['x-auth-key-id', 'x-auth-key-name', 'x-auth-roles', 'x-auth-permission'];
    assert.deepEqual(
      identity.map((name) => valuesOf(got!, name)),
      [[id], ['L%C3%A4ufer%207'], ['GUEST'], ['GRAFANA:READ_ANY']],
    );
    assert.deepEqual(valuesOf(got!, 'host'), ['grafana.example.org']);
    assert.deepEqual(valuesOf(got!, 'x-custom'), ['kept']);
    assert.deepEqual(valuesOf(got!, 'x-forwarded-proto'), ['https']);
    assert.ok(!JSON.stringify(got).includes(secret));
  });

  it('gets bodies whole, of which svc-api sees nothing', async () => {
    const body = 'body '.repeat(200_000);
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      const { status, got } = await ask(port(), { method, path: '/api/import', headers: [withKey(secret)], body });
      assert.deepEqual([status, got!.method, got!.body === body], [200, method, true]);
    }
  });

  it('gets more cookies than svc-api would take', async () => {
    const cookies = ['a', 'b', 'c'].map((name): [string, string] => ['Cookie', `${name}=${'x'.repeat(7000)}`]);
    const { status, got } = await ask(port(), { headers: [withKey(secret), ...cookies] });
    // These take no such request by themselves.
    if (name === 'haproxy' || name === 'apache') assert.equal(status, 400);
    else assert.deepEqual([status, valuesOf(got!, 'cookie').join('; ').length], [200, 3 * 7002 + 2 * '; '.length]);
  });

  it('is reached by HTTP/2', async () => {
    const { status, got } = await askByHttp2(port(), { path: '/api/x?y', headers: [withKey(secret)] });
    assert.deepEqual([status, got!.url, valuesOf(got!, 'x-auth-key-id')], [200, '/api/x?y', [id]]);
    const posted = await askByHttp2(port(), { method: 'POST', path: '/api/x', headers: [withKey(secret)], body: 'é' });
    assert.deepEqual([posted.status, posted.got!.body], [200, 'é']);
    assert.equal((await askByHttp2(port(), { path: '/api/x' })).status, 401);
  });

  it('talks by WebSocket, once the key was checked', async () => {
    const [socket, greeting] = await askForWebSocket(port(), [withKey(secret).join(': '), 'X-Auth-Key-Id: forged']);
    assert.match(greeting, /^HTTP\/1\.1 101 /);
    assert.ok(greeting.includes(`["x-auth-key-id","${id}"]`), greeting);
    assert.ok(!greeting.includes('forged'));
    socket.write('ping\n');
    for await (const echo of socket) {
      assert.equal(echo, 'ping\n');
      break;
    }
    const [refused, answer] = await askForWebSocket(port(), []);
    assert.match(answer, /^HTTP\/1\.1 401 /);
    refused.destroy();
  });

  it('gets many requests of many keys on kept connections, each under its own name', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 4 });
    const keys = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        site().keys.create({ name: `Many ${index}`, permissions: ['GRAFANA:READ_ANY'] }, OPERATOR),
      ),
    );
    const answers = await Promise.all(
      Array.from({ length: 200 }, async (_, index) => {
        const { key: secret, apiKey: key } = keys[index % keys.length]!;
        const { status, got } = await ask(port(), { path: `/${index}`, headers: [withKey(secret)], agent });
        return [status, got?.url, got && valuesOf(got, 'x-auth-key-id')[0] === key.id];
      }),
    );
    assert.deepEqual(
      answers,
      answers.map((_, index) => [200, `/${index}`, true]),
    );
    agent.destroy();
  });

  it('gets requests of each method, HEAD among them', async () => {
    for (const method of ['HEAD', 'OPTIONS', 'PROPFIND']) {
      const before = site().service.requests();
      const { status } = await ask(port(), { method, path: '/api/x', headers: [withKey(secret)] });
      assert.deepEqual([method, status, site().service.requests()], [method, 200, before + 1]);
    }
  });
});

describe("Caddy's directives", () => {
  it('would be in another order without the route of the example', async function () {
    needsPrograms(this, 'caddy');
    const site = await startGuardedSite('caddy', { edits: { '\troute {': '\thandle {' } });
    const { key: secret } = await site.keys.create({ name: 'Reader', permissions: ['GRAFANA:READ_ANY'] }, OPERATOR);
    const { got } = await ask(site.proxy.port, { headers: [withKey(secret)] });
    assert.deepEqual(valuesOf(got!, 'x-auth-key-id'), []);
    await site.stop();
  });
});
