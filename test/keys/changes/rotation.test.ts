import assert from 'node:assert/strict';
import { OPERATOR, type Principal, principalOf } from '../../../src/keys/authorization/principal.ts';
import type { ApiKey } from '../../../src/keys/key/api-key.ts';
import { describeAlwaysOnEach } from '../../support/dialects.ts';
import { authenticate, createPrincipal, openTestKeys, type TestKeys } from '../../support/keys.ts';
import type { RotatedKey } from '../../../src/keys/service/management.ts';
import { failDelivery } from '../../support/delivery.ts';

const HOUR = 3_600_000;

describeAlwaysOnEach('rotating a key', () => {
  let test: TestKeys;
  let id: string;
  let old: string;
  beforeEach(async () => {
    test = await openTestKeys();
    const { key: secret, apiKey: key } = await test.keys.create(
      { name: 'CI', roles: ['VIEWER'], expiresIn: '60d' },
      OPERATOR,
    );
    [id, old] = [key.id, secret];
  });
  afterEach(() => test.store.close());

  /** True if a secret is accepted, or the reason for its refusal. Counts as a use. */
  const enter = async (secret: string) => {
    const result = await authenticate(test.keys, secret);
    return 'refused' in result ? result.refused : result.principal.apiKey.id === id;
  };
  const rotate = (grace: string | null = null, activate: string | null = null) =>
    test.keys.rotate(id, { grace, activate }, OPERATOR);
  const hasCode = (code: string) => (error: Error & { code?: string }) => error.code === code;

  it('gives a new secret; id, name, grants and end stay', async () => {
    const { key: secret, before, after } = await rotate();
    assert.notEqual(secret, old);
    assert.deepEqual({ ...after, publicId: '', rotation: null }, { ...before, publicId: '' });
    assert.equal(after.publicId, secret.slice(4, 16));
    assert.deepEqual([await enter(secret), await enter(old)], [true, true]);
  });

  it('revokes the previous secret when the grace is over: after 24 hours, as requested, or at once', async () => {
    for (const [grace, length] of [
      [undefined, 24 * HOUR],
      ['90m', 1.5 * HOUR],
      ['0s', 0],
      [' 000s ', 0],
      ['0', 0],
    ] as const) {
      const { key: secret } = await rotate(grace);
      test.time.now += length - 1;
      if (length > 0) assert.equal(await enter(old), true, grace);
      test.time.now += 1;
      assert.deepEqual([await enter(old), await enter(secret)], ['rotated', true], grace);
      old = secret;
    }
  });

  it('revokes the previous secret for good at once, also where a clock is behind', async () => {
    const { key: secret } = await rotate('0s');
    const { time } = test;
    time.now -= 1000;
    assert.deepEqual([await enter(old), await enter(secret)], ['rotated', true]);
    await assert.rejects(test.keys.rollBackRotation(id, OPERATOR), hasCode('ROTATION_NONE'));
    const { key: next } = await rotate('1h');
    time.now += 1000;
    await test.keys.finishRotation(id, OPERATOR);
    time.now -= 500;
    assert.deepEqual([await enter(secret), await enter(next)], ['rotated', true]);
    await assert.rejects(test.keys.finishRotation(id, OPERATOR), hasCode('ROTATION_NONE'));
  });

  it('lets the grace last 90 days at most', async () => {
    const { after } = await rotate('90d');
    assert.equal(after.rotation?.previousEndsAt, test.time.now + 90 * 24 * HOUR);
    await test.keys.finishRotation(id, OPERATOR);
    await assert.rejects(rotate('100000w'), {
      code: 'EXPIRY_INVALID',
      message: '"100000w" is longer than 90 days. Choose a shorter grace period.',
    });
  });

  it('begins the grace when the new secret is first used', async () => {
    const { key: secret } = await rotate('1h', ' On-First-Use ');
    test.time.now += 30 * 24 * HOUR;
    assert.equal(await enter(old), true);
    await test.keys.finishActivity();
    assert.equal(
      (await test.keys.findById(id, OPERATOR))!.rotation!.previousEndsAt,
      null,
      'the previous secret does not activate',
    );
    assert.equal(await enter(secret), true);
    await test.keys.finishActivity();
    assert.equal((await test.keys.findById(id, OPERATOR))!.rotation!.previousEndsAt, test.time.now + HOUR);
    test.time.now += HOUR;
    assert.deepEqual([await enter(old), await enter(secret)], ['rotated', true]);
  });

  it('writes the first use at once, not with the other counts', async () => {
    const delays: number[] = [];
    await test.store.close();
    test = await openTestKeys({ schedule: (_, delay) => delays.push(delay) });
    const { apiKey: key } = await test.keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
    const { key: secret } = await test.keys.rotate(key.id, { activate: 'on-first-use' }, OPERATOR);
    await authenticate(test.keys, secret);
    await authenticate(test.keys, secret);
    assert.deepEqual(delays, [0, 2000]);
  });

  it('refuses a second one while a key has two secrets, and not after', async () => {
    const { key: secret } = await rotate('1h');
    await assert.rejects(rotate('1h'), hasCode('ROTATION_IN_PROGRESS'));
    assert.deepEqual([await enter(old), await enter(secret)], [true, true]);
    test.time.now += HOUR;
    const second = await rotate('1h');
    assert.deepEqual([await enter(old), await enter(secret), await enter(second.key)], ['rotated', true, true]);
    await test.keys.finishRotation(id, OPERATOR);
    await rotate('1h', 'on-first-use');
    test.time.now += 1000 * HOUR;
    await assert.rejects(rotate('1h'), hasCode('ROTATION_IN_PROGRESS'));
  });

  it('finishes one that is under way once its new secret is the last in use', async () => {
    const days: string[] = [old];
    for (let day = 0; day < 5; day += 1) {
      const { key: secret } = await rotate('24h');
      days.push(secret);
      test.time.now += 23 * HOUR;
      assert.deepEqual([await enter(secret), await enter(days.at(-2)!)], [true, true]);
      await test.keys.finishActivity();
      const said = new Date(test.time.now + HOUR).toISOString();
      await assert.rejects(rotate('24h'), {
        code: 'ROTATION_IN_PROGRESS',
        message:
          'The API key "CI" is already being rotated, and its latest request did not use the new secret. ' +
          `It can be rotated once the new secret is in use, or after ${said}.`,
      });
      test.time.now += 1;
      assert.equal(await enter(secret), true);
      await test.keys.finishActivity();
    }
    const { key: last } = await rotate('24h');
    assert.deepEqual(
      [await enter(days.at(-2)!), await enter(days.at(-1)!), await enter(last)],
      ['rotated', true, true],
    );
  });

  it('requested twice at once happens once', async () => {
    const results = await Promise.allSettled([rotate(), rotate(), rotate()]);
    assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 1);
  });

  it('can be finished and rolled back early, once', async () => {
    const { key: secret } = await rotate('1h', 'on-first-use');
    const { after } = await test.keys.finishRotation(id, OPERATOR);
    const end = after.rotation?.previousEndsAt;
    assert.deepEqual([end, await enter(old), await enter(secret)], [test.time.now, 'rotated', true]);
    await assert.rejects(test.keys.finishRotation(id, OPERATOR), hasCode('ROTATION_NONE'));
    const second = await rotate('1h');
    const back = await test.keys.rollBackRotation(id, OPERATOR);
    assert.deepEqual(
      [back.after.publicId, await enter(secret), await enter(second.key)],
      [secret.slice(4, 16), true, 'rotated'],
    );
    await assert.rejects(test.keys.rollBackRotation(id, OPERATOR), hasCode('ROTATION_NONE'));
    await rotate('0s');
    await assert.rejects(
      test.keys.rollBackRotation(id, OPERATOR),
      hasCode('ROTATION_NONE'),
      'the previous secret is over',
    );
  });

  it('under way ends with the key: both secrets are refused when it is deleted, replaced, disabled or expired', async () => {
    const both = async (secret: string) => [await enter(old), await enter(secret)];
    const { key: secret } = await rotate('90d');
    await test.keys.setEnabled(id, false, OPERATOR);
    assert.deepEqual(await both(secret), ['disabled', 'disabled']);
    await test.keys.setEnabled(id, true, OPERATOR);
    const replacement = { name: 'CI', roles: ['GUEST'], overwrite: true };
    await failDelivery(
      (delivery) => test.keys.create(replacement, OPERATOR, delivery),
      async () => assert.deepEqual(await both(secret), ['unknown', 'unknown']),
    );
    assert.deepEqual(await both(secret), [true, true], 'both are back');
    test.time.now += 60 * 24 * HOUR;
    assert.deepEqual(await both(secret), ['expired', 'expired']);
    await test.keys.delete([id], OPERATOR);
    assert.deepEqual(await both(secret), ['unknown', 'unknown']);
  });

  it('is reverted where the new secret cannot be delivered, unless the key has another one by then', async () => {
    const rotateLost = (meanwhile?: (rotated: RotatedKey) => Promise<unknown>) =>
      failDelivery((delivery) => test.keys.rotate(id, { grace: '1h' }, OPERATOR, delivery), meanwhile);
    const first = await rotateLost();
    assert.deepEqual([await enter(old), await enter(first.key)], [true, 'rotated']);
    let third = '';
    const second = await rotateLost(async () => {
      await test.keys.finishRotation(id, OPERATOR);
      third = (await rotate('1h')).key;
    });
    assert.deepEqual([await enter(second.key), await enter(third)], [true, true], 'the later rotation stands');
  });

  it('starts the grace when the new secret was delivered, not before', async () => {
    const deliver = async ({ after }: RotatedKey) => {
      assert.equal(after.rotation?.previousEndsAt, null);
      test.time.now += HOUR;
    };
    const { after } = await test.keys.rotate(id, { grace: '1h' }, OPERATOR, { deliver });
    assert.equal(after.rotation?.previousEndsAt, test.time.now + HOUR);
  });

  it('is not reverted where the key was deleted meanwhile', async () => {
    await failDelivery(
      (delivery) => test.keys.rotate(id, {}, OPERATOR, delivery),
      () => test.keys.delete([id], OPERATOR),
    );
    assert.equal(await test.keys.findById(id, OPERATOR), undefined);
  });

  describe('whose grace begins with the first use of the new secret', () => {
    const endOf = async () => (await test.keys.findById(id, OPERATOR))!.rotation?.previousEndsAt;
    let secret: string;
    beforeEach(async () => {
      ({ key: secret } = await rotate('1h', 'on-first-use'));
      await enter(secret);
    });

    it('begins none for a later secret that was not used', async () => {
      await test.keys.finishRotation(id, OPERATOR);
      await rotate('1h', 'on-first-use');
      await test.keys.finishActivity();
      assert.equal(await endOf(), null);
    });

    it('begins none if the previous secret was already revoked', async () => {
      await test.keys.finishRotation(id, OPERATOR);
      await test.keys.finishActivity();
      assert.equal(await endOf(), test.time.now);
    });

    it('begins it once, though several servers have seen the new secret', async () => {
      const other = await openTestKeys({ database: test.database });
      await authenticate(other.keys, secret);
      await test.keys.finishActivity();
      const end = test.time.now + HOUR;
      other.time.now += HOUR / 2;
      await other.keys.finishActivity();
      assert.equal(await endOf(), end);
      await other.store.close();
    });
  });

  it('begins no grace where the key is deleted, or the rotation finished, while the secret is delivered', async () => {
    await test.keys.rotate(id, {}, OPERATOR, {
      deliver: async () => void (await test.keys.finishRotation(id, OPERATOR)),
    });
    assert.equal((await test.keys.findById(id, OPERATOR))!.rotation!.previousEndsAt, test.time.now);
    await test.keys.rotate(id, {}, OPERATOR, { deliver: async () => void (await test.keys.delete([id], OPERATOR)) });
    assert.equal(await test.keys.findById(id, OPERATOR), undefined);
  });

  describe('that disables the keys that it had created', () => {
    let parent: Principal;
    let child: ApiKey;
    const disabledAt = async () => (await test.keys.findById(child.id, OPERATOR))?.disabledAt;
    beforeEach(async () => {
      const permissions = ['API_KEY:CREATE_OWN', 'API_KEY:UPDATE_OWN'];
      ({ principal: parent } = await createPrincipal(test.keys, { name: 'Parent', permissions }));
      ({ apiKey: child } = await test.keys.create({ name: 'Child', permissions }, parent));
      test.time.now += HOUR;
    });
    const request = { grace: '0s', disableCreated: true };
    const rotateLost = (meanwhile: () => Promise<unknown>) =>
      failDelivery((delivery) => test.keys.rotate(parent.apiKey.id, request, OPERATOR, delivery), meanwhile);

    it('includes those created at the given instant, and leaves disabled ones as they are', async () => {
      const since = new Date(child.createdAt).toISOString();
      const late = await test.keys.rotate(parent.apiKey.id, { ...request, createdSince: since }, OPERATOR);
      assert.deepEqual([late.disabled.map(({ name }) => name), await disabledAt()], [['Child'], test.time.now]);
      test.time.now += HOUR;
      const again = await test.keys.rotate(parent.apiKey.id, request, OPERATOR);
      assert.deepEqual([again.disabled, again.created.length, await disabledAt()], [[], 1, test.time.now - HOUR]);
    });

    it('is refused to a key that may not change those', async () => {
      const [chain] = await test.keys.chainsOf([child]);
      const { principal } = await createPrincipal(
        test.keys,
        {
          name: 'Grandchild',
          permissions: ['API_KEY:CREATE_OWN'],
        },
        principalOf(chain!, test.keys.catalog),
      );
      assert.equal(principal.apiKey.createdBy, child.id);
      await assert.rejects(test.keys.rotate(child.id, request, parent), {
        code: 'FORBIDDEN',
        message: 'This key lacks API_KEY:UPDATE_ANY.',
      });
    });

    it('enables them again where its secret cannot be delivered', async () => {
      await rotateLost(async () => assert.equal(await disabledAt(), test.time.now));
      assert.equal(await disabledAt(), null);
      const [entry] = await test.keys.audit.read({ apiKey: 'Child' }, OPERATOR);
      assert.equal(entry!.action, 'ENABLE');
    });

    it('leaves them as they are where they were changed or deleted meanwhile', async () => {
      await rotateLost(async () => {
        await test.keys.setEnabled(child.id, true, OPERATOR);
        test.time.now += 1000;
        await test.keys.setEnabled(child.id, false, OPERATOR);
      });
      assert.equal(await disabledAt(), test.time.now);
      await test.keys.setEnabled(child.id, true, OPERATOR);
      await rotateLost(() => test.keys.delete([child.id], OPERATOR));
      assert.equal(await disabledAt(), undefined);
    });
  });

  it('begins the grace with the first use where that is asked for, not with the delivery', async () => {
    const { after } = await test.keys.rotate(id, { activate: 'on-first-use' }, OPERATOR, { deliver: () => {} });
    assert.equal(after.rotation?.previousEndsAt, null);
    assert.equal((await test.keys.findById(id, OPERATOR))!.rotation?.previousEndsAt, null);
  });

  it('names every issue: of the duration, of the activation, of the id', async () => {
    const unreadable = ['', '-1h', '1', '1y', 'soon', '1.5h', '0.5h', '0h1', 'x0h', '1H', '0S'];
    for (const grace of [...unreadable, '100000w', '91d', '7776001s'])
      await assert.rejects(rotate(grace), hasCode('EXPIRY_INVALID'), grace);
    await assert.rejects(rotate('1h', 'later'), {
      code: 'USAGE',
      message: '"later" is not an activation. Use now or on-first-use.',
    });
    await assert.rejects(test.keys.rotate('nobody', {}, OPERATOR), hasCode('NOT_FOUND'));
    assert.equal(await enter(old), true);
  });

  it('requires the permission to change the key, and all that it holds', async () => {
    const as = (name: string, input: { roles?: string[]; permissions: string[]; expiresIn?: string }) =>
      createPrincipal(test.keys, { name, ...input }).then(({ principal }) => principal);
    const lesser = await as('Lesser', { permissions: ['API_KEY:UPDATE_ANY', 'ME:READ_OWN'] });
    await assert.rejects(test.keys.rotate(id, {}, lesser), hasCode('FORBIDDEN'), 'would get a secret that can do more');
    const stranger = await as('Stranger', { roles: ['VIEWER'], permissions: ['API_KEY:UPDATE_OWN'] });
    await assert.rejects(test.keys.rotate(id, {}, stranger), hasCode('FORBIDDEN'), 'does not own it');
    const shortLived = await as('Short', { roles: ['VIEWER'], permissions: ['API_KEY:UPDATE_ANY'], expiresIn: '1d' });
    await assert.rejects(test.keys.rotate(id, {}, shortLived), hasCode('FORBIDDEN'), 'would outlive itself');
    const equal = await as('Equal', { roles: ['VIEWER'], permissions: ['API_KEY:UPDATE_ANY'] });
    await test.keys.rotate(id, {}, equal);
    await assert.rejects(test.keys.finishRotation(id, stranger), hasCode('FORBIDDEN'));
    await assert.rejects(test.keys.rollBackRotation(id, stranger), hasCode('FORBIDDEN'));
    const own = await as('Own', { permissions: ['API_KEY:UPDATE_OWN'] });
    const { key: secret } = await test.keys.rotate(own.apiKey.id, {}, own);
    assert.ok(secret);
  });
});
