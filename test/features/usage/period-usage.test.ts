import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { Usage, type UsageRequest } from '../../../src/features/usage/usage.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { authenticate, openTestKeys, type TestKeys, whileUseWaits } from '../../support/keys.ts';

const HOUR = 3_600_000;

describeOnEach('the use of keys by the hour', () => {
  let test: TestKeys;
  beforeEach(async () => {
    test = await openTestKeys();
  });
  afterEach(() => test.store.close());
  const create = (name = 'CI') => test.keys.create({ name, roles: ['GUEST'] }, OPERATOR);
  const use = async (secret: string, { keys }: TestKeys = test) => void (await authenticate(keys, secret));
  /** Hours after the start of 2030, each with its counts other than 0. */
  const usageOf = async (id: string, request: UsageRequest = {}) => {
    const { periods } = await test.keys.feature(Usage).byPeriod(id, request);
    return periods.map(({ start, ...counts }) => [
      (start - Date.UTC(2030, 0, 1)) / HOUR,
      Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0)),
    ]);
  };

  it('is shown by hours in UTC, and by days', async () => {
    const { key: secret, apiKey: key } = await create();
    for (const hours of [0, 0.5, 1, 23, 24]) {
      test.time.now = Date.UTC(2030, 0, 1) + hours * HOUR;
      await use(secret);
    }
    await test.keys.finishActivity();
    assert.deepEqual(await usageOf(key.id, { from: '2030-01-01' }), [
      [0, { accepted: 2 }],
      [1, { accepted: 1 }],
      [23, { accepted: 1 }],
      [24, { accepted: 1 }],
    ]);
    assert.deepEqual(await usageOf(key.id, { by: 'DAY' }), [
      [0, { accepted: 4 }],
      [24, { accepted: 1 }],
    ]);
    assert.deepEqual(await usageOf(key.id, { from: '2030-01-01T01:00:00Z', to: '2030-01-02T00:00:00Z' }), [
      [1, { accepted: 1 }],
      [23, { accepted: 1 }],
    ]);
  });

  it('of several servers adds up, also within an hour that was written before', async () => {
    const { key: secret, apiKey: key } = await create();
    const other = await openTestKeys({ database: test.database });
    for (let round = 0; round < 2; round += 1) {
      await use(secret);
      await use(secret, other);
      await Promise.all([test.keys.finishActivity(), other.keys.finishActivity()]);
    }
    await other.store.close();
    assert.deepEqual(await usageOf(key.id), [[0, { accepted: 4 }]]);
  });

  it('has requests of keys that are disabled, expired or rotated, which are no use', async () => {
    const { key: secret, apiKey: key } = await create();
    await test.keys.setEnabled(key.id, false, OPERATOR);
    await use(secret);
    await test.keys.setEnabled(key.id, true, OPERATOR);
    await test.keys.rotate(key.id, { grace: '0s' }, OPERATOR);
    await use(secret);
    await test.keys.update(key.id, { expiresIn: '1s' }, OPERATOR);
    test.time.now += 1000;
    await use(secret);
    await use('nonsense');
    await test.keys.finishActivity();
    assert.deepEqual(await usageOf(key.id), [[0, { refused: 3 }]]);
    assert.deepEqual(await test.keys.useOf([key.id]), new Map());
  });

  it('stays with a key that is rotated or renamed, and goes with one that is deleted or replaced', async () => {
    const [kept, replaced] = [await create('Kept'), await create('Replaced')];
    for (const { key: secret } of [kept, replaced]) await use(secret);
    await test.keys.finishActivity();
    await test.keys.rotate(kept.apiKey.id, {}, OPERATOR);
    await test.keys.update(kept.apiKey.id, { name: 'Renamed' }, OPERATOR);
    const { apiKey: key } = await test.keys.create({ name: 'Replaced', roles: ['GUEST'], overwrite: true }, OPERATOR);
    assert.deepEqual(await usageOf(kept.apiKey.id), [[0, { accepted: 1 }]]);
    assert.deepEqual([await usageOf(replaced.apiKey.id), await usageOf(key.id)], [[], []]);
    await use(kept.key);
    await test.keys.delete([kept.apiKey.id], OPERATOR);
    await test.keys.finishActivity();
    assert.deepEqual(await usageOf(kept.apiKey.id), []);
  });

  it('is kept hour by hour while the store cannot take it, up to 24 hours', async () => {
    const { key: secret, apiKey: key } = await create();
    const quick = await openTestKeys({ asServer: true, database: test.database, lockWaitMs: 1 });
    await whileUseWaits(test, async () => {
      for (let hour = 0; hour < 26; hour += 1) {
        await use(secret, quick);
        await assert.rejects(quick.keys.finishActivity(), { code: 'STORE_LOCKED' });
        quick.time.now += HOUR;
      }
    });
    await quick.keys.finishActivity();
    await quick.store.close();
    test.time.now = quick.time.now;
    const hours = await usageOf(key.id, { from: '2030-01-01' });
    assert.deepEqual(hours.slice(-2), [
      [22, { accepted: 1 }],
      [23, { accepted: 3 }],
    ]);
    assert.equal(hours.length, 24);
  });
});
