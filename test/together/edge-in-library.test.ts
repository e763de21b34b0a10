import assert from 'node:assert/strict';
import { Hono } from 'hono';
import { bearerAuth, openEdge, OPERATOR, type OpenKeys } from '../../src/index.ts';
import { startTestService, type TestService } from '../support/server.ts';
import { until } from '../support/until.ts';

describe('the library over an edge', () => {
  let test: TestService;
  let token: string;
  let edge: OpenKeys | undefined;

  beforeEach(async () => {
    test = await startTestService();
    test.time.now = Date.now();
    ({ key: token } = await test.keys.create({ name: 'Edge', permissions: ['EDGE:READ_ANY'] }, OPERATOR));
  });

  afterEach(async () => {
    await edge?.close();
    edge = undefined;
    await test.stop();
  });

  it('checks keys as over their store', async () => {
    const { key: secret, apiKey: key } = await test.keys.create({ name: 'Key', roles: ['VIEWER'] }, OPERATOR);
    const keys = (edge = await openEdge({ origin: `${test.url}/`, token }));
    const checked = await keys.check({ secret }, { permission: 'INFO:READ_ANY' });
    assert.ok(checked.ok);
    assert.equal(checked.principal.apiKey.name, 'Key');
    const app = new Hono();
    app.use(bearerAuth({ keys, permission: 'INFO:READ_ANY' }));
    app.get('/', (c) => c.text('passed'));
    const statusOf = async (held: string) =>
      (await app.request('/', { headers: { Authorization: `Bearer ${held}` } })).status;
    assert.equal(await statusOf(secret), 200);
    await test.keys.delete([key.id], OPERATOR);
    assert.equal(await statusOf(secret), 401);
    await assert.rejects(keys.create({ name: 'No', roles: ['VIEWER'] }, { actor: OPERATOR }), {
      code: 'STORE_REQUIRED',
    });
  });

  it('goes on with other roles', async () => {
    const { key: secret } = await test.keys.create({ name: 'Key', permissions: ['INFO:READ_ANY'] }, OPERATOR);
    const keys = (edge = await openEdge({ origin: test.url, token, resources: ['PET'] }));
    const changed = keys.withAdditions({ resources: ['CAT'] });
    await until(async () => (await changed.check({ secret }, { permission: 'INFO:READ_ANY' })).ok);
    const lacking = await changed.check({ secret }, { permission: 'CAT:READ_ANY' as 'INFO:READ_ANY' });
    assert.equal(lacking.ok ? 200 : lacking.status, 403);
  });

  it('is refused with an unknown key', async () => {
    await assert.rejects(openEdge({ origin: test.url, token: 'svc_unknown' }), { code: 'UNAUTHENTICATED' });
  });
});
