import assert from 'node:assert/strict';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import type { NewKey } from '../../src/keys/key/key-change.ts';
import { describeOnEach } from '../support/dialects.ts';
import { createPrincipal } from '../support/keys.ts';
import { query, startTestService, type TestService } from '../support/server.ts';
import { until } from '../support/until.ts';

describeOnEach('budgets', () => {
  let test: TestService;
  before(async () => {
    test = await startTestService();
  });
  after(() => test.stop());
  let count = 0;
  const create = (fields: Partial<NewKey>) => {
    count += 1;
    return test.keys.create({ name: `Key ${count}`, roles: ['GUEST'], ...fields }, OPERATOR);
  };
  const ask = (secret: string, url = test.url) => query(url, secret, '{ me { name budgets { limit left } } }');
  const statuses = async (secret: string, requests: number) => {
    const found: number[] = [];
    for (let index = 0; index < requests; index += 1) found.push((await ask(secret)).status);
    return found;
  };
  const left = async (id: string) => {
    const key = (await test.keys.findById(id, OPERATOR))!;
    return (await test.keys.budgetsOf([key])).get(id)!.map((budget) => budget.left);
  };

  it('are spent for good, and answers show what is left', async () => {
    const { key: secret } = await create({ limits: ['2/budget', '5/h'] });
    const first = await ask(secret);
    assert.equal(first.headers.get('RateLimit-Policy'), '"hour";q=5;w=3600, "budget";q=2');
    assert.equal(first.headers.get('RateLimit'), '"hour";r=4;t=720, "budget";r=1');
    const { data } = (await ask(secret)).body as { data: { me: { budgets: object[] } } };
    assert.deepEqual(data.me.budgets, [{ limit: '2/budget', left: 0 }]);
    test.time.now += 30 * 86_400_000;
    const refused = await ask(secret);
    assert.deepEqual([refused.status, refused.headers.get('Retry-After')], [429, null]);
    assert.equal(refused.headers.get('RateLimit'), '"hour";r=5, "budget";r=0');
    assert.deepEqual(refused.body, {
      errors: [{ message: 'The budget of 2 is spent. Waiting does not help.', extensions: { code: 'BUDGET_SPENT' } }],
    });
  });

  it('leave a key the rate limits that hold by default', async () => {
    const limited = await startTestService({ defaultLimits: ['2/m'] });
    const { key: secret } = await limited.keys.create(
      { name: 'Both', roles: ['GUEST'], limits: ['9/budget'] },
      OPERATOR,
    );
    const reply = await ask(secret, limited.url);
    assert.equal(reply.headers.get('RateLimit-Policy'), '"minute";q=2;w=60, "budget";q=9');
    await limited.stop();
  });

  it('of a key count the requests of its child keys', async () => {
    const parent = await createPrincipal(test.keys, { name: 'Parent', roles: ['ADMIN'], limits: ['3/budget'] });
    const child = await createPrincipal(
      test.keys,
      { name: 'Child', roles: ['GUEST'], limits: ['2/uses'] },
      parent.principal,
    );
    assert.deepEqual(await statuses(child.secret, 3), [200, 200, 429]);
    assert.deepEqual(await statuses(parent.secret, 2), [200, 429]);
    assert.deepEqual([await left(parent.principal.apiKey.id), await left(child.principal.apiKey.id)], [[0], [0]]);
  });

  it('are the same after a rotation, and grow by added amounts', async () => {
    const { key: secret, apiKey } = await create({ limits: ['3/budget'] });
    assert.deepEqual(await statuses(secret, 2), [200, 200]);
    const rotated = await test.keys.rotate(apiKey.id, {}, OPERATOR);
    assert.deepEqual(await statuses(rotated.key, 2), [200, 429]);
    await test.keys.update(apiKey.id, { limits: ['5/budget'] }, OPERATOR);
    assert.deepEqual(await left(apiKey.id), [2]);
    await until(async () => (await ask(rotated.key)).status === 200);
    assert.deepEqual(await statuses(rotated.key, 2), [200, 429]);
  });

  it('hold over several servers that requests come to together', async () => {
    const other = await startTestService({ database: test.database });
    other.time.now = test.time.now;
    const { key: secret, apiKey } = await create({ limits: ['40/budget'] });
    const replies = await Promise.all(
      Array.from({ length: 60 }, (_, index) => ask(secret, index % 2 === 0 ? test.url : other.url)),
    );
    assert.equal(replies.filter(({ status }) => status === 200).length, 40);
    assert.deepEqual(await left(apiKey.id), [0]);
    await other.stop();
  });
});
