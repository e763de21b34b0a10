import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import type { NewKey } from '../../../src/keys/key/key-change.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { createPrincipal } from '../../support/keys.ts';
import { query, startTestService, type TestService } from '../../support/server.ts';

describeOnEach('budgets of a key that takes a place', () => {
  let test: TestService;
  before(async () => {
    test = await startTestService();
  });
  after(() => test.stop());
  const statuses = async (secret: string, requests: number) => {
    const found: number[] = [];
    for (let index = 0; index < requests; index += 1)
      found.push((await query(test.url, secret, '{ me { name } }')).status);
    return found;
  };
  const left = async (id: string) => {
    const key = (await test.keys.findById(id, OPERATOR))!;
    return (await test.keys.budgetsOf([key])).get(id)!.map((budget) => budget.left);
  };

  it('begin anew for a key that replaces another one, but not for one that replaces itself', async () => {
    const input: NewKey = { name: 'Again', roles: ['ADMIN'], limits: ['3/budget'], overwrite: true };
    const { principal, secret } = await createPrincipal(test.keys, input);
    assert.deepEqual(await statuses(secret, 2), [200, 200]);
    const itself = await test.keys.create(input, principal);
    assert.deepEqual(await left(itself.apiKey.id), [1]);
    const replaced = await test.keys.create(input, OPERATOR);
    assert.deepEqual(await left(replaced.apiKey.id), [3]);
  });

  it('are as they were where a key cannot be replaced after all', async () => {
    const input: NewKey = { name: 'Kept', roles: ['GUEST'], limits: ['3/budget'] };
    const { key: secret, apiKey } = await test.keys.create(input, OPERATOR);
    assert.deepEqual(await statuses(secret, 2), [200, 200]);
    const deliver = () => Promise.reject(new Error('nobody listens'));
    const replacing = { name: apiKey.name, roles: ['GUEST'], limits: ['9/budget'], overwrite: true };
    await assert.rejects(test.keys.create(replacing, OPERATOR, { deliver }), { message: 'nobody listens' });
    assert.deepEqual(await left(apiKey.id), [1]);
  });
});
