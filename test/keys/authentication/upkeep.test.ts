import assert from 'node:assert/strict';
import { Upkeep } from '../../../src/keys/authentication/upkeep.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import type { KeyUse } from '../../../src/keys/key/use.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { authenticate, openTestKeys, type TestKeys } from '../../support/keys.ts';

const DAY = 86_400_000;

describeOnEach('a feature that follows the use of keys', () => {
  let test: TestKeys;
  let used: KeyUse[];
  let condensed: number[];
  let forgotten: string[];
  let left: number;
  beforeEach(async () => {
    [used, condensed, forgotten, left] = [[], [], [], 2];
    const follower = {
      name: 'follower',
      onKeys: {
        used: async (_: unknown, uses: readonly KeyUse[]) => void used.push(...uses),
        condensing: async (_: unknown, now: number) => (condensed.push(now), true),
        forgetting: async (_: unknown, ids: readonly string[]) => {
          forgotten.push(...ids);
          left -= 1;
          return left === 0;
        },
      },
    };
    test = await openTestKeys({ features: [{ name: 'quiet' }, follower] });
  });
  afterEach(() => test.store.close());

  it('gets all uses once, is asked to condense once an hour, and forgets deleted keys in steps', async () => {
    const { key: secret, apiKey: key } = await test.keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
    await authenticate(test.keys, secret);
    await authenticate(test.keys, secret);
    await test.keys.finishActivity();
    assert.deepEqual(
      used.map(({ id, uses, lastUsedAt }) => [id, uses, lastUsedAt]),
      [[key.id, 2, test.time.now]],
    );
    const upkeep = new Upkeep(test.options);
    await upkeep.run();
    await upkeep.run();
    assert.deepEqual([condensed, forgotten], [[test.time.now], []]);
    await test.keys.delete([key.id], OPERATOR);
    test.time.now += DAY;
    await upkeep.run();
    assert.deepEqual(forgotten, [key.id, key.id]);
    assert.deepEqual(await test.keys.useOf([key.id]), new Map());
  });

  it('keeps uses from being written while it fails, and gets them later', async () => {
    const { key: secret, apiKey: key } = await test.keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
    await authenticate(test.keys, secret);
    const push = used.push.bind(used);
    used.push = () => {
      throw new Error('It cannot.');
    };
    await assert.rejects(test.keys.finishActivity(), { code: 'STORE_FAILED' });
    assert.deepEqual(await test.keys.useOf([key.id]), new Map());
    used.push = push;
    await test.keys.finishActivity();
    assert.deepEqual([used.length, (await test.keys.useOf([key.id])).get(key.id)?.uses], [1, 1]);
  });
});
