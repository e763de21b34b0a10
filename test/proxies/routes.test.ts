import assert from 'node:assert/strict';
import type { Permission } from '../../src/keys/permissions/catalog.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { ask } from '../support/proxies/client.ts';
import { describeEachProxy, withKey } from '../support/proxies/describe.ts';

/** A request, the permission of its key, and the status that it gets. */
type Case = readonly [method: string, path: string, permission: Permission | undefined, status: number];

const CASES: readonly Case[] = [
  ['GET', '/api/dashboards/7', 'GRAFANA:READ_ANY', 200],
  ['HEAD', '/api/dashboards/7?x=1', 'GRAFANA:READ_ANY', 200],
  ['POST', '/api/dashboards/7', 'GRAFANA:READ_ANY', 403],
  ['POST', '/api/dashboards/7', 'GRAFANA:UPDATE_ANY', 200],
  ['GET', '/api/dashboards/7', 'GRAFANA:UPDATE_ANY', 403],
  ['GET', '/api/dashboards/7', undefined, 401],
  ['GET', '/admin/users', 'GRAFANA:READ_ANY', 403],
  ['GET', '/admin/users', 'GRAFANA:DELETE_ANY', 200],
  ['GET', '/public/logo.svg', undefined, 200],
  ['GET', '/elsewhere', 'GRAFANA:DELETE_ANY', 403],
  ['GET', '/elsewhere', undefined, 403],
];

describeEachProxy('a service whose routes are declared', { by: 'routes' }, (site) => {
  const secrets = new Map<string | undefined, string>();
  before(async () => {
    for (const [, , permission] of CASES) {
      if (permission === undefined || secrets.has(permission)) continue;
      const name = permission.replaceAll(/[^A-Z]/g, ' ');
      secrets.set(permission, (await site().keys.create({ name, permissions: [permission] }, OPERATOR)).key);
    }
  });

  for (const [method, path, permission, expected] of CASES) {
    it(`answers ${expected} to ${method} ${path} with ${permission ?? 'no key'}`, async () => {
      const headers = permission ? [withKey(secrets.get(permission)!)] : [];
      const before = site().service.requests();
      const { status } = await ask(site().proxy.port, { method, path, headers });
      assert.deepEqual([status, site().service.requests() - before], [expected, expected === 200 ? 1 : 0]);
    });
  }

  it('lets CORS preflights pass without a key where the route says so', async () => {
    const preflight = (path: string, ...headers: [string, string][]) =>
      ask(site().proxy.port, { method: 'OPTIONS', path, headers: [['Origin', 'https://app.example.org'], ...headers] });
    const asksFor = (method: string): [string, string] => ['Access-Control-Request-Method', method];
    assert.equal((await preflight('/api/x', asksFor('POST'))).status, 200);
    assert.equal((await preflight('/api/x')).status, 401);
    assert.equal((await preflight('/admin/x', asksFor('POST'))).status, 401);
  });

  it('lets the client choose nothing by its query', async () => {
    const { key: secret } = await site().keys.create({ name: 'Guest', roles: ['GUEST'] }, OPERATOR);
    for (const query of [
      'permission=ME:READ_OWN',
      'any=ME:READ_OWN',
      'key',
      'key=',
      'permission=ONLINE:READ_ANY&key',
    ]) {
      const { status } = await ask(site().proxy.port, { path: `/admin/x?${query}`, headers: [withKey(secret)] });
      assert.deepEqual([query, status], [query, 403]);
    }
  });

  it('knows the site by its name alone, in whatever case, with whatever port', async () => {
    const headers = [withKey(secrets.get('GRAFANA:READ_ANY')!)];
    for (const host of ['GRAFANA.example.ORG', 'grafana.example.org:443', 'grafana.example.org:8443']) {
      const { status } = await ask(site().proxy.port, { path: '/api/x', headers: [...headers, ['Host', host]] });
      assert.deepEqual([host, status], [host, 200]);
    }
  });
});
