import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { OPERATOR, type Principal, requirePermission } from '../../../src/keys/authorization/principal.ts';
import { createSecret } from '../../../src/keys/secret/secret.ts';
import { damageKey } from '../../support/damage.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { authenticate, openTestKeys, type TestKeys, whileUseWaits } from '../../support/keys.ts';

describeOnEach('the use of keys', () => {
  let test: TestKeys;
  let scheduled: { work: () => void; delayMs: number }[];
  beforeEach(async () => {
    scheduled = [];
    test = await openTestKeys({ schedule: (work, delayMs) => scheduled.push({ work, delayMs }) });
  });
  afterEach(() => test.store.close());
  const create = (name: string, permissions = ['API_KEY:READ_ANY', 'DOCKER:READ_ANY', 'DOCKER:UPDATE_ANY']) =>
    test.keys.create({ name, permissions }, OPERATOR);
  const enter = async (secret: string): Promise<Principal> => {
    const result = await authenticate(test.keys, secret);
    assert.ok('principal' in result);
    return result.principal;
  };
  const usageOf = async (id: string) => (await test.keys.useOf([id])).get(id);
  const refusals = async () =>
    (await test.keys.audit.read({ action: 'refuse' }, OPERATOR))
      .toReversed()
      .map(({ actor, apiKey: key, after }) => [actor.name, key?.name, after]);

  it('is counted in memory, and written in one batch later', async () => {
    const { key: secret, apiKey: key } = await create('CI');
    for (let use = 0; use < 5; use += 1) {
      test.time.now += 1000;
      await enter(secret);
    }
    assert.deepEqual([scheduled.map(({ delayMs }) => delayMs), await usageOf(key.id)], [[2000], undefined]);
    await test.keys.finishActivity();
    assert.deepEqual(await usageOf(key.id), { uses: 5, lastUsedAt: test.time.now, previousLastUsedAt: null });
    test.time.now += 1000;
    await enter(secret);
    await test.keys.finishActivity();
    assert.deepEqual(await usageOf(key.id), { uses: 6, lastUsedAt: test.time.now, previousLastUsedAt: null });
  });

  it('of many new secrets at once is written at once, together', async () => {
    const secrets = [];
    for (let index = 0; index < 5; index += 1) {
      const { apiKey: key } = await create(`Rotated ${index}`);
      secrets.push((await test.keys.rotate(key.id, { activate: 'on-first-use' }, OPERATOR)).key);
    }
    scheduled = [];
    for (const secret of secrets) await enter(secret);
    assert.equal(scheduled.filter(({ delayMs }) => delayMs === 0).length, 1);
    await test.keys.finishActivity();
    for (const secret of secrets) {
      const { apiKey: key } = await enter(secret);
      assert.notEqual((await test.keys.findByName(key.name, OPERATOR))!.rotation!.previousEndsAt, null);
    }
  });

  it('of several servers adds up, and the latest time counts', async () => {
    const { key: secret, apiKey: key } = await create('CI');
    const other = await openTestKeys({ database: test.database });
    other.time.now += 5000;
    await enter(secret);
    await authenticate(other.keys, secret);
    await other.keys.finishActivity();
    await test.keys.finishActivity();
    assert.deepEqual(await usageOf(key.id), { uses: 2, lastUsedAt: other.time.now, previousLastUsedAt: null });
    await other.store.close();
  });

  it('has the last use of the previous secret, and counts both', async () => {
    const { key: secret, apiKey: key } = await create('CI');
    await enter(secret);
    const rotated = await test.keys.rotate(key.id, {}, OPERATOR);
    test.time.now += 1000;
    await enter(secret);
    test.time.now += 1000;
    await enter(rotated.key);
    await test.keys.finishActivity();
    assert.deepEqual(await usageOf(key.id), {
      uses: 3,
      lastUsedAt: test.time.now,
      previousLastUsedAt: test.time.now - 1000,
    });
  });

  it('is kept for the next time when the store cannot take it', async () => {
    const { key: secret, apiKey: key } = await create('CI');
    await enter(secret);
    const quick = await openTestKeys({ database: test.database, lockWaitMs: 1, schedule: () => {} });
    await whileUseWaits(test, async () => {
      await authenticate(quick.keys, secret);
      await assert.rejects(quick.keys.finishActivity(), { code: 'STORE_LOCKED' });
      await authenticate(quick.keys, secret);
    });
    await quick.keys.finishActivity();
    await test.keys.finishActivity();
    assert.equal((await usageOf(key.id))?.uses, 3);
    await quick.store.close();
  });

  it('is kept with its times when the store cannot take it, and what comes meanwhile is later', async () => {
    const { key: secret, apiKey: key } = await create('CI');
    const { key: next } = await test.keys.rotate(key.id, {}, OPERATOR);
    const quick = await openTestKeys({ database: test.database, lockWaitMs: 100, schedule: () => {} });
    const start = quick.time.now;
    const seenAt = async () => {
      await quick.keys.finishActivity();
      const { lastUsedAt, previousLastUsedAt } = (await usageOf(key.id))!;
      return [lastUsedAt! - start, previousLastUsedAt! - start];
    };
    const failedWrite = (meanwhile: () => Promise<unknown>) =>
      whileUseWaits(test, async () => {
        const attempt = assert.rejects(quick.keys.finishActivity(), { code: 'STORE_LOCKED' });
        await meanwhile();
        await attempt;
      });
    await authenticate(quick.keys, secret);
    quick.time.now += 1000;
    await authenticate(quick.keys, next);
    await failedWrite(async () => {});
    assert.deepEqual(await seenAt(), [1000, 0]);
    await authenticate(quick.keys, secret);
    await failedWrite(async () => {
      await yieldToEventLoop();
      quick.time.now += 1000;
      return authenticate(quick.keys, secret);
    });
    assert.deepEqual(await seenAt(), [2000, 2000]);
    await quick.store.close();
  });

  it('of a key that is damaged before its new secret is noted keeps that of others', async () => {
    const [damaged, kept] = [await create('Damaged'), await create('Kept')];
    const { key: secret } = await test.keys.rotate(damaged.apiKey.id, { activate: 'on-first-use' }, OPERATOR);
    await enter(secret);
    await enter(kept.key);
    await damageKey(test.database, 'Damaged', `roles = '[]'`);
    await test.keys.finishActivity();
    assert.equal((await usageOf(kept.apiKey.id))?.uses, 1);
  });

  it('of a key that is gone is ignored, without losing that of others', async () => {
    const [gone, kept] = [await create('Gone'), await create('Kept')];
    await enter(gone.key);
    await enter(kept.key);
    await test.keys.delete([gone.apiKey.id], OPERATOR);
    await test.keys.finishActivity();
    assert.deepEqual([await usageOf(gone.apiKey.id), (await usageOf(kept.apiKey.id))?.uses], [undefined, 1]);
  });

  it('that is refused is logged, only by the prefix', async () => {
    const { key: secret, apiKey: key } = await create('CI');
    await test.keys.setEnabled(key.id, false, OPERATOR);
    await authenticate(test.keys, secret);
    await authenticate(test.keys, 'nonsense');
    await test.keys.setEnabled(key.id, true, OPERATOR);
    const principal = await enter(secret);
    assert.throws(() => requirePermission(principal, 'DISK', 'READ_ANY'));
    await test.keys.finishActivity();
    assert.deepEqual(await refusals(), [
      [`svc_${key.publicId}_…`, 'CI', { reason: 'disabled', count: 1 }],
      [null, undefined, { reason: 'malformed', count: 1 }],
      ['CI', undefined, { reason: 'forbidden', count: 1, missing: ['DISK:READ_ANY'] }],
    ]);
    assert.ok(!('broken' in (await test.keys.audit.check()).verification));
  });

  it('that is refused over and over makes few entries, with numbers', async () => {
    for (let request = 0; request < 1000; request += 1) await authenticate(test.keys, 'nonsense');
    await test.keys.finishActivity();
    assert.deepEqual(await refusals(), [
      [null, undefined, { reason: 'malformed', count: 1 }],
      [null, undefined, { reason: 'malformed', count: 999 }],
    ]);
  });

  it('that is refused in ever new ways makes a bounded number of entries per minute', async () => {
    for (let request = 0; request < 500; request += 1) await authenticate(test.keys, createSecret(randomBytes).text);
    await test.keys.finishActivity();
    const all = await test.keys.audit.read({ action: 'refuse', first: 500 }, OPERATOR);
    assert.equal(all.length, 6);
    assert.deepEqual(all[0]!.after, { reason: 'various', count: 495 });
    test.time.now += 601_000;
    await authenticate(test.keys, 'nonsense');
    await test.keys.finishActivity();
    assert.equal((await test.keys.audit.read({ action: 'refuse', first: 500 }, OPERATOR)).length, 7);
  });
});
