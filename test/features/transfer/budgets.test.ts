import assert from 'node:assert/strict';
import { Transfer } from '../../../src/features/transfer/transfer.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { query, startTestService, type TestService } from '../../support/server.ts';

describeOnEach('budgets', () => {
  let test: TestService;
  beforeEach(async () => {
    test = await startTestService();
  });
  afterEach(() => test.stop());
  const create = (name: string, limits: string[]) => test.keys.create({ name, roles: ['GUEST'], limits }, OPERATOR);
  const ask = (secret: string) => query(test.url, secret, '{ me { name } }');

  it('are exported with digests as the remaining amount, and a spent key stays spent elsewhere', async () => {
    const { key: some, apiKey } = await create('Some', ['9/h', '3/budget']);
    const { key: once, apiKey: spent } = await create('Once', ['1/uses']);
    for (const secret of [some, once]) assert.equal((await ask(secret)).status, 200);
    const exported = async (withDigests: boolean) => {
      const found = new Map<string, [limits: string[], disabled: boolean]>();
      for await (const { keys } of test.keys.feature(Transfer).export({ withDigests }))
        for (const { id, limits, disabled } of keys) found.set(id, [limits, disabled]);
      return [found.get(apiKey.id), found.get(spent.id)];
    };
    assert.deepEqual(await exported(true), [
      [['9/h', '2/budget'], false],
      [['1/uses'], true],
    ]);
    assert.deepEqual(await exported(false), [
      [['9/h', '3/budget'], false],
      [['1/uses'], false],
    ]);
  });
});
