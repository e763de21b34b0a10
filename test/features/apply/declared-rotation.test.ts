import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import type { SecretDelivery } from '../../../src/keys/changes/delivery.ts';
import type { AppliedKeys } from '../../../src/features/apply/apply.ts';
import { applyDeclared } from './declared-keys.ts';
import { failDelivery } from '../../support/delivery.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { authenticate, createPrincipal, openTestKeys, type TestKeys } from '../../support/keys.ts';

const DAY = 86_400_000;

describeOnEach('declared keys that end and get new secrets', () => {
  let test: TestKeys;
  beforeEach(async () => {
    test = await openTestKeys();
  });
  afterEach(() => test.store.close());

  const CI = { name: 'CI', roles: ['VIEWER'] };
  const apply = (fields: object, delivery?: SecretDelivery<AppliedKeys>) =>
    applyDeclared(test.keys, [{ ...CI, ...fields }], delivery && { delivery });
  const find = async () => (await test.keys.findByName('CI', OPERATOR))!;
  const enters = async (secret: string) => {
    const result = await authenticate(test.keys, secret);
    await test.keys.finishActivity();
    return 'refused' in result ? result.refused : true;
  };
  const create = async (fields: object) => (await apply(fields)).created[0]!.key;
  const actions = async () => (await test.keys.audit.read({}, OPERATOR)).map(({ action }) => action).toReversed();
  const passDays = (days: number) => void (test.time.now += days * DAY);

  describe('by how long they live', () => {
    it('end that long after they got their secret, and are then renewed with another one', async () => {
      const first = await create({ expiresIn: '30d' });
      const { id, expiresAt } = await find();
      assert.equal(expiresAt, test.time.now + 30 * DAY);
      passDays(29);
      assert.equal((await apply({ expiresIn: '30d' })).plan.unchanged, 1);

      passDays(1);
      const { plan, rotated } = await apply({ expiresIn: '30d' });
      assert.deepEqual(
        plan.updates.map(({ action, before, after }) => [action, before.expiresAt, after.expiresAt]),
        [['RENEW', test.time.now, test.time.now + 30 * DAY]],
      );
      assert.deepEqual([await enters(first), await enters(rotated[0]!.key)], ['rotated', true]);
      assert.equal((await find()).id, id);
      assert.deepEqual((await actions()).slice(0, 3), ['CREATE', 'UPDATE', 'ROTATE']);
      assert.equal((await apply({ expiresIn: '30d' })).plan.unchanged, 1);
    });

    it('follow a longer or shorter life in the file, but for a key that would have ended: that gets all of it', async () => {
      await create({});
      const created = test.time.now;
      passDays(10);
      await apply({ expiresIn: '90d' });
      assert.equal((await find()).expiresAt, created + 90 * DAY);
      await apply({ expiresIn: '30d' });
      assert.equal((await find()).expiresAt, created + 30 * DAY);
      await apply({ expiresIn: '5d' });
      assert.equal((await find()).expiresAt, test.time.now + 5 * DAY);
      passDays(1);
      assert.equal((await apply({ expiresIn: '5d' })).plan.unchanged, 1);
    });

    it('stay as they are where they are disabled, and where their end is a date', async () => {
      await create({ expiresIn: '1d' });
      passDays(2);
      assert.equal((await apply({ expiresIn: '1d', enabled: false })).rotated.length, 0);
      const end = new Date(test.time.now + DAY).toISOString();
      await applyDeclared(test.keys, [{ name: 'Dated', roles: ['GUEST'], expiresAt: end }]);
      passDays(2);
      const { plan } = await applyDeclared(test.keys, [{ name: 'Dated', roles: ['GUEST'], expiresAt: end }]);
      assert.equal(plan.unchanged, 1);
    });
  });

  describe('by the age of their secret', () => {
    const ROTATE = { rotate: { every: '60d', grace: '7d' } };

    it('are rotated once it is that old; the previous one works for the grace after the first use of the new one', async () => {
      const first = await create(ROTATE);
      passDays(59);
      assert.equal((await apply(ROTATE)).plan.unchanged, 1);
      passDays(1);
      const { plan, rotated } = await apply(ROTATE);
      assert.deepEqual(
        plan.updates.map(({ action }) => action),
        ['ROTATE'],
      );
      const [{ key: second } = assert.fail()] = rotated;
      assert.equal((await apply(ROTATE)).plan.unchanged, 1);
      passDays(10);
      assert.deepEqual([await enters(first), await enters(second)], [true, true]);
      passDays(7);
      assert.deepEqual([await enters(first), await enters(second)], ['rotated', true]);
      passDays(43);
      assert.equal((await apply(ROTATE)).rotated.length, 1);
      assert.deepEqual(
        (await actions()).filter((action) => action !== 'REFUSE'),
        ['CREATE', 'ROTATE', 'ROTATE_ACTIVATE', 'ROTATE'],
      );
    });

    it('wait while the last new one is not in use, and finish that rotation once it is', async () => {
      const daily = { rotate: { every: '1d', grace: '30d' } };
      await create(daily);
      passDays(1);
      const [{ key: second } = assert.fail()] = (await apply(daily)).rotated;
      passDays(1);
      const { plan } = await apply(daily);
      assert.deepEqual([plan.unchanged, plan.waiting], [1, [{ name: 'CI', previousEndsAt: null }]]);
      assert.equal(await enters(second), true);
      const [{ key: third } = assert.fail()] = (await apply(daily)).rotated;
      assert.deepEqual([await enters(second), await enters(third)], [true, true]);
      assert.deepEqual(await actions(), [
        'CREATE',
        'ROTATE',
        'ROTATE_ACTIVATE',
        'ROTATE_FINISH',
        'ROTATE',
        'ROTATE_ACTIVATE',
      ]);
    });

    it('count the age from the last secret, also where that rotation was finished', async () => {
      await create(ROTATE);
      passDays(40);
      const { id } = await find();
      await test.keys.rotate(id, { grace: '1d' }, OPERATOR);
      await test.keys.finishRotation(id, OPERATOR);
      passDays(59);
      assert.equal((await apply(ROTATE)).plan.unchanged, 1);
      passDays(1);
      assert.equal((await apply(ROTATE)).rotated.length, 1);
    });

    it('live on with the new one, changed as declared', async () => {
      await create({ ...ROTATE, expiresIn: '70d' });
      passDays(65);
      await apply({ ...ROTATE, expiresIn: '70d', description: 'New' });
      const { description, expiresAt } = await find();
      assert.deepEqual([description, expiresAt], ['New', test.time.now + 70 * DAY]);
      assert.deepEqual(await actions(), ['CREATE', 'UPDATE', 'ROTATE']);
    });

    it('are as before where the secret cannot be delivered', async () => {
      const first = await create({ ...ROTATE, expiresIn: '70d' });
      const before = await find();
      for (const days of [65, 10]) {
        passDays(days);
        let lost = '';
        const declared = { ...ROTATE, expiresIn: '70d' };
        await failDelivery(
          (delivery: SecretDelivery<AppliedKeys>) => apply(declared, delivery),
          async ({ rotated }) => void (lost = rotated[0]!.key),
        );
        assert.equal(await enters(lost), 'rotated');
        assert.deepEqual(await find(), before);
      }
      assert.equal(await enters(first), 'expired');
    });

    it('are only rotated by keys that hold all their permissions', async () => {
      await create(ROTATE);
      passDays(60);
      const { principal } = await createPrincipal(test.keys, {
        name: 'Applier',
        permissions: ['API_KEY:UPDATE_ANY', 'API_KEY:READ_ANY'],
      });
      const declared = [{ ...CI, ...ROTATE }];
      await assert.rejects(applyDeclared(test.keys, declared, {}, principal), { code: 'FORBIDDEN' });
    });
  });
});
