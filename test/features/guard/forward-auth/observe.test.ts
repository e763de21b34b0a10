import assert from 'node:assert/strict';
import { OPERATOR } from '../../../../src/keys/authorization/principal.ts';
import { describeOnEach } from '../../../support/dialects.ts';
import { type AskedServer, ASKING, keyLine, routeTo, startAskedServer, withHeaders } from '../support/forward-auth.ts';

describeOnEach('a route that observes', () => {
  let server: AskedServer;
  let reader: string;
  let idle: string;
  before(async () => {
    const observe = { observe: true };
    const routes = [
      routeTo('/api/**', { kind: 'all', permissions: ['GRAFANA:READ_ANY', 'GRAFANA:UPDATE_ANY'] }, observe),
      routeTo('/get/**', { kind: 'resource', resource: 'GRAFANA' }, observe),
      routeTo('/closed/**', { kind: 'all', permissions: ['GRAFANA:UPDATE_ANY'] }),
    ];
    server = await startAskedServer({ config: { routes, limits: { default: [], failedCredentials: '2/m' } } });
    const create = async (name: string, permission: 'GRAFANA:READ_ANY' | 'ME:READ_OWN') =>
      keyLine((await server.keys.create({ name, permissions: [permission] }, OPERATOR)).key);
    [reader, idle] = [await create('Reader', 'GRAFANA:READ_ANY'), await create('Idle', 'ME:READ_OWN')];
  });
  after(() => server.stop());

  const ask = (target: string, ...lines: string[]) => server.send(withHeaders(ASKING.caddy({ target }), ...lines));
  const observed = async () => {
    await server.keys.finishActivity();
    const entries = await server.keys.audit.read({ action: 'OBSERVE', first: 500 }, OPERATOR);
    return entries.map(({ actor, after }) => {
      const { route, reason, count, missing } = after as Record<string, unknown>;
      return [route, reason, actor.name, missing, count];
    });
  };

  it('allows what it would refuse, and records the caller and the missing permissions', async () => {
    for (const lines of [[], [], [keyLine('nonsense')], [reader], [idle]])
      assert.equal((await ask('/api/users', ...lines)).status, 200, lines.join());
    const known = await ask('/api/users', reader);
    assert.equal(known.headers.get('x-auth-key-name'), 'Reader');
    assert.equal((await ask('/api/users')).headers.get('x-auth-key-name'), '');
    const route = 'grafana.example.org/api/**';
    const found = await observed();
    const counted = new Map<string, number>();
    for (const [pattern, ...more] of found) {
      const what = JSON.stringify(more.slice(0, 3));
      if (pattern === route) counted.set(what, (counted.get(what) ?? 0) + Number(more[3]));
    }
    assert.deepEqual(
      counted,
      new Map([
        ['["observing",null,null]', 1],
        ['["no valid key",null,null]', 4],
        ['["forbidden","Reader",["GRAFANA:UPDATE_ANY"]]', 2],
        ['["forbidden","Idle",["GRAFANA:READ_ANY","GRAFANA:UPDATE_ANY"]]', 1],
      ]),
    );
    const refused = await server.keys.audit.read({ action: 'REFUSE' }, OPERATOR);
    assert.deepEqual(
      refused.filter(({ actor }) => actor.kind === 'KEY'),
      [],
    );
  });

  it('allows what it would allow without a record, and any number of invalid keys', async () => {
    const before = (await observed()).length;
    assert.equal((await ask('/get/x', reader)).status, 200);
    for (let sent = 0; sent < 6; sent += 1) assert.equal((await ask('/get/x', keyLine('nonsense'))).status, 200);
    const patterns = (await observed()).slice(0, -before).map(([, reason]) => reason);
    assert.deepEqual(new Set(patterns), new Set(['observing', 'no valid key', 'refused']));
  });

  it('leaves other routes as they are, and what no route is for', async () => {
    assert.equal((await ask('/closed/x', reader)).status, 403);
    assert.equal((await ask('/nowhere', reader)).status, 403);
    assert.equal((await ask('/api/../closed', reader)).status, 403);
  });

  it('treats a key that is no longer valid as missing', async () => {
    const { key, apiKey } = await server.keys.create({ name: 'Lost', permissions: ['GRAFANA:READ_ANY'] }, OPERATOR);
    await server.keys.setEnabled(apiKey.id, false, OPERATOR);
    const { status, headers } = await ask('/api/users', keyLine(key));
    assert.deepEqual([status, headers.get('x-auth-key-name')], [200, '']);
  });
});
