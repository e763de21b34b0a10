import assert from 'node:assert/strict';
import { OPERATOR } from '../../../../src/keys/authorization/principal.ts';
import type { Action } from '../../../../src/keys/permissions/catalog.ts';
import {
  ALL_PROXIES,
  type AskedServer,
  ASKING,
  keyLine,
  startAskedServer,
  withHeaders,
} from '../support/forward-auth.ts';

const METHODS = ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE', 'PROPFIND', 'PURGE', 'TRACE'] as const;
type Method = (typeof METHODS)[number];
const READING: readonly Method[] = ['GET', 'HEAD', 'OPTIONS'];

describe("the permission for a request's method", () => {
  let server: AskedServer;
  const keys: Partial<Record<Action, string>> = {};
  let all: string;
  before(async () => {
    server = await startAskedServer();
    for (const action of ['READ_ANY', 'READ_OWN', 'CREATE_ANY', 'UPDATE_ANY', 'DELETE_ANY'] as const) {
      const input = { name: action.replace('_', ' '), permissions: [`GRAFANA:${action}`] } as const;
      keys[action] = keyLine((await server.keys.create(input, OPERATOR)).key);
    }
    all = keyLine((await server.keys.create({ name: 'All', roles: ['ADMIN'] }, OPERATOR)).key);
  });
  after(() => server.stop());

  /** The methods that a key can use. */
  const passing = async (query: string, key: string, proxy: (typeof ALL_PROXIES)[number] = 'nginx') => {
    const passed: Method[] = [];
    for (const method of METHODS) {
      const { status } = await server.send(withHeaders(ASKING[proxy]({ method, target: '/x' }, query), key));
      assert.ok(status === 200 || status === 403, `${status}`);
      if (status === 200) passed.push(method);
    }
    return passed;
  };

  for (const proxy of ALL_PROXIES) {
    it(`is the permission on the resource that ${proxy} names`, async () => {
      const query = '?resource=GRAFANA';
      assert.deepEqual(await passing(query, keys.READ_ANY!, proxy), READING);
      assert.deepEqual(await passing(query, keys.CREATE_ANY!, proxy), ['POST']);
      assert.deepEqual(await passing(query, keys.UPDATE_ANY!, proxy), ['PUT', 'PATCH']);
      assert.deepEqual(await passing(query, keys.DELETE_ANY!, proxy), ['DELETE']);
      assert.deepEqual(await passing(query, keys.READ_OWN!, proxy), []);
      assert.deepEqual(await passing(query, all, proxy), [...READING, 'POST', 'PUT', 'PATCH', 'DELETE']);
    });

    it(`is more than to read, whatever ${proxy} allows with a permission to read`, async () => {
      assert.deepEqual(await passing('?permission=GRAFANA:READ_ANY', all, proxy), READING);
      assert.deepEqual(await passing('?permission=GRAFANA:READ_OWN', keys.READ_OWN!, proxy), READING);
      assert.deepEqual(await passing('?permission=GRAFANA:READ_ANY&methods=any', keys.READ_ANY!, proxy), METHODS);
      assert.deepEqual(await passing('?methods=any&any=GRAFANA:READ_ANY', keys.READ_ANY!, proxy), METHODS);
    });
  }

  it('is one that is not to read, of several', async () => {
    const both = '?permission=GRAFANA:READ_ANY&permission=GRAFANA:UPDATE_ANY';
    assert.deepEqual(await passing(both, all), METHODS);
    assert.deepEqual(await passing(both, keys.UPDATE_ANY!), []);
    const either = '?any=GRAFANA:READ_ANY&any=GRAFANA:UPDATE_ANY';
    assert.deepEqual(await passing(either, keys.READ_ANY!), READING);
    assert.deepEqual(await passing(either, keys.UPDATE_ANY!), METHODS);
    assert.deepEqual(await passing('?any=GRAFANA:READ_ANY&any=GRAFANA:READ_OWN', all), READING);
    assert.deepEqual(await passing('?permission=GRAFANA:CREATE_ANY', keys.CREATE_ANY!), METHODS);
  });

  it('is reported to the service, and to a key that lacks it', async () => {
    const ask = (method: string, key: string) =>
      server.send(withHeaders(ASKING.nginx({ method }, '?resource=grafana'), key));
    assert.equal((await ask('PATCH', all)).headers.get('x-auth-permission'), 'GRAFANA:UPDATE_ANY');
    const { headers } = await ask('DELETE', keys.READ_ANY!);
    assert.match(headers.get('www-authenticate')!, /insufficient_scope", scope="GRAFANA:DELETE_ANY"/);
  });

  it('is not another one that the service may see in it', async () => {
    for (const [query, expected] of [
      ['?resource=GRAFANA', 403],
      ['?permission=GRAFANA:READ_ANY', 403],
      ['?permission=GRAFANA:READ_ANY&methods=any', 200],
      ['?permission=GRAFANA:UPDATE_ANY', 200],
      ['?key', 200],
    ] as const) {
      for (const line of ['X-HTTP-Method-Override: DELETE', 'x_http_method: POST', 'X-Method-Override: PUT'])
        assert.equal((await server.send(withHeaders(ASKING.nginx({}, query), all, line))).status, expected, line);
      const overriding = ASKING.nginx({ target: '/x?_method=DELETE' }, query);
      assert.equal((await server.send(withHeaders(overriding, all))).status, expected, query);
      const path = withHeaders(ASKING.nginx({}, query), all, 'X-Original-URL: /y');
      assert.equal((await server.send(path)).status, 200, query);
    }
    const same = ASKING.nginx({ method: 'PUT', target: '/x?_method=PATCH' }, '?resource=GRAFANA');
    assert.equal((await server.send(withHeaders(same, all))).status, 200);
  });
});
