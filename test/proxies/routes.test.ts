import assert from 'node:assert/strict';
import { ask } from '../support/proxies/client.ts';
import { describeEachProxy } from '../support/proxies/describe.ts';

/** A request, its key's permission, and the status. */
type Case = readonly [method: string, path: string, action: 'READ' | 'UPDATE' | 'DELETE' | undefined, status: number];

const CASES: readonly Case[] = [
  ['GET', '/api/dashboards/7', 'READ', 200],
  ['HEAD', '/api/dashboards/7?x=1', 'READ', 200],
  ['POST', '/api/dashboards/7', 'READ', 403],
  ['POST', '/api/dashboards/7', 'UPDATE', 200],
  ['GET', '/api/dashboards/7', 'UPDATE', 403],
  ['GET', '/api/dashboards/7', undefined, 401],
  ['GET', '/admin/users', 'READ', 403],
  ['GET', '/admin/users', 'DELETE', 200],
  ['GET', '/public/logo.svg', undefined, 200],
  ['GET', '/elsewhere', 'DELETE', 403],
  ['GET', '/elsewhere', undefined, 403],
];

describeEachProxy('a service whose routes are declared', { rule: 'routes' }, (site) => {
  const keys = new Map<string | undefined, [string, string]>();
  before(async () => {
    for (const action of ['READ', 'UPDATE', 'DELETE'] as const)
      keys.set(action, await site().keyWith({ permissions: [site().may(action)] }));
  });

  for (const [method, path, action, expected] of CASES) {
    it(`answers ${expected} to ${method} ${path} with ${action ?? 'no key'}`, async () => {
      const headers = action ? [keys.get(action)!] : [];
      const before = site().service.requests();
      const { status } = await ask(site().port, { method, path, headers });
      assert.deepEqual([status, site().service.requests() - before], [expected, expected === 200 ? 1 : 0]);
    });
  }

  it('lets CORS preflights pass without a key if the route says so', async () => {
    const preflight = (path: string, ...headers: [string, string][]) =>
      ask(site().port, { method: 'OPTIONS', path, headers: [['Origin', 'https://app.example.org'], ...headers] });
    const asksFor = (method: string): [string, string] => ['Access-Control-Request-Method', method];
    assert.equal((await preflight('/api/x', asksFor('POST'))).status, 200);
    assert.equal((await preflight('/api/x')).status, 401);
    assert.equal((await preflight('/admin/x', asksFor('POST'))).status, 401);
  });

  it('lets the client choose nothing by its query', async () => {
    const guest = await site().keyWith({ roles: ['GUEST'] });
    for (const query of [
      'permission=ME:READ_OWN',
      'any=ME:READ_OWN',
      'resource=ME',
      'methods=any',
      'key',
      'key=',
      'permission=ONLINE:READ_ANY&key',
    ]) {
      const { status } = await ask(site().port, { path: `/admin/x?${query}`, headers: [guest] });
      assert.deepEqual([query, status], [query, 403]);
    }
  });

  it('knows the site only by its name, in any case, with any port', async () => {
    const headers = [keys.get('READ')!];
    for (const host of ['GRAFANA.example.ORG', 'grafana.example.org:443', 'grafana.example.org:8443']) {
      const { status } = await ask(site().port, { path: '/api/x', headers: [...headers, ['Host', host]] });
      assert.deepEqual([host, status], [host, 200]);
    }
  });
});
