import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { stepsOfPlugin } from '../../../src/keys/changes/steps-of-plugins.ts';
import type { KeyListener } from '../../../src/keys/changes/transaction.ts';
import { KeysError } from '../../../src/keys/basics/errors.ts';
import { KeysService } from '../../../src/keys/service/service.ts';
import { describeAlwaysOnEach } from '../../support/dialects.ts';
import { insertKeys } from '../../support/insert-keys.ts';
import { until } from '../../support/until.ts';
import { createPrincipal, openTestKeys, storedKey, type TestKeys } from '../../support/keys.ts';

describeAlwaysOnEach('a feature that follows changes of keys', () => {
  let heard: string[] = [];
  let refuses: string | undefined;
  let refusing: KeyListener['refuses'];
  let test: TestKeys;

  const names = (keys: readonly { name: string }[]) =>
    keys
      .map(({ name }) => name)
      .toSorted()
      .join('+');
  const hear = (event: string) => {
    heard.push(event);
    if (event === refuses) throw new KeysError('FORBIDDEN', 'not this one');
  };
  const onKeys: KeyListener = {
    refuses: (...change) => refusing?.(...change),
    async changing({ find }, changes) {
      const there = await find.findBy(
        'id',
        changes.map(({ after }) => after.id),
      );
      hear(`changing ${names(there) || 'none'} to ${names(changes.map(({ after }) => after))}`);
    },
    async changed(_, changes) {
      const before = changes.flatMap((change) => change.before ?? []);
      hear(`changed ${names(before) || 'none'} to ${names(changes.map(({ after }) => after))}`);
    },
    async deleted({ find }, keys) {
      assert.equal(await find.findById(keys[0]!.id), undefined);
      hear(`deleted ${names(keys)}`);
    },
    async replacing({ find }, { replaced, apiKey }) {
      assert.ok(await find.findById(replaced[0].id));
      hear(`replacing ${names(replaced)}`);
      return {
        replaced: async (here) => hear(`replaced ${(await here.find.findById(apiKey.id))?.name}`),
        reverted: async (here) => hear(`reverted ${(await here.find.findById(replaced[0].id))?.name}`),
      };
    },
  };

  beforeEach(async () => {
    test = await openTestKeys({ features: [{ name: 'quiet' }, { name: 'follower', onKeys }] });
    [heard, refuses, refusing] = [[], undefined, undefined];
  });
  afterEach(() => test.store.close());

  const create = (name: string, overwrite = false) =>
    test.keys.create({ name, permissions: ['ME:READ_OWN'], overwrite }, OPERATOR);

  it('hears of each, in its transaction', async () => {
    const { apiKey } = await create('a');
    await test.keys.update(apiKey.id, { name: 'b' }, OPERATOR);
    await test.keys.delete([apiKey.id], OPERATOR);
    assert.deepEqual(heard, [
      'changing none to a',
      'changed none to a',
      'changing a to b',
      'changed a to b',
      'deleted b',
    ]);
  });

  it('hears of several at once', async () => {
    const ids = [(await create('a')).apiKey.id, (await create('b')).apiKey.id];
    heard = [];
    await test.keys.changeAll(ids, { what: 'DISABLE' }, OPERATOR);
    await insertKeys(test.keys, [storedKey('c'), storedKey('d')]);
    await test.keys.delete(ids, OPERATOR);
    assert.deepEqual(heard, [
      'changing a+b to a+b',
      'changed a+b to a+b',
      'changing none to c+d',
      'changed none to c+d',
      'deleted a+b',
    ]);
  });

  it('hears of keys that end with their creator', async () => {
    const { principal } = await createPrincipal(test.keys, { name: 'creator', roles: ['ADMIN'] });
    await test.keys.create({ name: 'child', permissions: ['ME:READ_OWN'] }, principal);
    heard = [];
    await test.keys.delete([principal.apiKey.id], OPERATOR);
    assert.deepEqual(heard, ['deleted child+creator']);
  });

  it('hears of a key that takes the place of others, and of that being reverted', async () => {
    await create('a');
    heard = [];
    await create('a', true);
    const taken = ['replacing a', 'deleted a', 'changing none to a', 'changed none to a', 'replaced a'];
    assert.deepEqual(heard, taken);
    heard = [];
    const deliver = () => {
      throw new KeysError('FORBIDDEN', 'not delivered');
    };
    const input = { name: 'a', permissions: ['ME:READ_OWN'], overwrite: true } as const;
    await assert.rejects(test.keys.create(input, OPERATOR, { deliver }), { message: 'not delivered' });
    assert.deepEqual(heard, [...taken, 'deleted a', 'changing none to a', 'changed none to a', 'reverted a']);
  });

  it('can refuse a change, which then is not made', async () => {
    const { apiKey } = await create('a');
    for (const event of ['changing a to b', 'changed a to b']) {
      refuses = event;
      await assert.rejects(test.keys.update(apiKey.id, { name: 'b' }, OPERATOR), { message: 'not this one' });
      assert.equal((await test.keys.findById(apiKey.id, OPERATOR))?.name, 'a');
    }
    refuses = 'replaced a';
    await assert.rejects(create('a', true), { message: 'not this one' });
    assert.equal((await test.keys.findByName('a', OPERATOR))?.id, apiKey.id);
    refuses = 'deleted a';
    await assert.rejects(test.keys.delete([apiKey.id], OPERATOR), { message: 'not this one' });
    assert.ok(await test.keys.findById(apiKey.id, OPERATOR));
  });

  it('adds to the effects of keys on others, which a rotation after a leak shows', async () => {
    const { apiKey } = await create('a');
    const { apiKey: other } = await create('b');
    const at = [test.time.now - 1, test.time.now - 2];
    const issuing = at.map((time): KeyListener => {
      const one = { name: 'b', what: 'ENABLING', at: time } as const;
      return {
        issued: async ({ find }, ids) =>
          ids.includes(apiKey.id) ? [{ ...one, apiKey: (await find.findById(other.id))! }] : [],
      };
    });
    const keys = new KeysService({ ...test.options, listeners: issuing });
    const expected = at.toReversed().map((time) => ({ name: 'b', apiKey: other, what: 'ENABLING', at: time }));
    assert.deepEqual(await keys.issuedBy([apiKey.id], OPERATOR), expected);
    assert.deepEqual(await keys.issuedBy([other.id], OPERATOR), []);
    const { issued } = await keys.rotate(apiKey.id, { disableCreated: true }, OPERATOR);
    assert.deepEqual(issued, expected);
  });

  it('says which of its own changes of a key would be refused', async () => {
    const { principal } = await createPrincipal(test.keys, { name: 'a', roles: ['ADMIN'] });
    const rules: KeyListener['rules'] = {
      PRAISE: () => {},
      // Listeners have no say in changes of the core.
      DELETE: () => {
        throw new Error('refused by a listener');
      },
      BLAME: async ({ caller }, { name }) => {
        throw new KeysError(
          'FORBIDDEN',
          `${caller === OPERATOR ? 'The operator' : caller.apiKey.name} blames ${name}.`,
        );
      },
    };
    const keys = new KeysService({ ...test.options, listeners: [{ rules }] });
    const [changes] = await keys.permittedChanges.possibleChanges([principal.apiKey], principal);
    assert.deepEqual(
      changes!.find(({ change }) => change === 'DELETE'),
      { change: 'DELETE', refusal: null },
    );
    assert.deepEqual(changes!.slice(-2), [
      { change: 'PRAISE', refusal: null },
      { change: 'BLAME', refusal: { code: 'FORBIDDEN', reason: 'a blames a.' } },
    ]);
  });

  describe('of a plugin', () => {
    const withSteps = (steps: KeyListener) =>
      new KeysService({ ...test.options, listeners: [stepsOfPlugin('svc-api-x', steps)] });
    const failsWith = async (work: Promise<unknown>, step: string, reason: RegExp) =>
      assert.rejects(work, ({ code, message }: KeysError) => {
        assert.equal(code, 'FEATURE_FAILED', message);
        for (const part of [/svc-api-x/, reason]) assert.match(message, part);
        assert.ok(message.includes(`${step} `), message);
        return true;
      });
    const fail = async () => {
      throw new TypeError('x is not a function');
    };
    const input = { name: 'b', permissions: ['ME:READ_OWN'] };
    const overwriting = { ...input, name: 'a', overwrite: true };

    it('that takes too long fails, and cannot use its transaction any more', async () => {
      let goOn = () => {};
      let later: Promise<unknown> | undefined;
      const changed: KeyListener['changed'] = async (transaction, changes) => {
        await new Promise<void>((resolve) => (goOn = resolve));
        later = transaction.find.findById(changes[0]!.after.id);
        await later;
      };
      const slow = new KeysService({ ...test.options, listeners: [stepsOfPlugin('svc-api-x', { changed }, 20)] });
      await failsWith(slow.create(input, OPERATOR), 'onKeys.changed', /more than 0.02 seconds/);
      await create(input.name);
      goOn();
      await until(() => later !== undefined);
      await assert.rejects(async () => later, /rolled back/);
    });

    it('that fails names it and the step, and changes nothing', async () => {
      const { apiKey } = await create('a');
      const { id } = apiKey;
      const { principal } = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] });
      const reason = /x is not a function/;
      for (const step of ['changing', 'changed'] as const)
        await failsWith(withSteps({ [step]: fail }).create(input, OPERATOR), `onKeys.${step}`, reason);
      await failsWith(withSteps({ deleted: fail }).delete([id], OPERATOR), 'onKeys.deleted', reason);
      await failsWith(withSteps({ refuses: fail }).update(id, { name: 'c' }, OPERATOR), 'onKeys.refuses', reason);
      await failsWith(withSteps({ issued: fail }).issuedBy([id], OPERATOR), 'onKeys.issued', reason);
      for (const later of ['replaced', 'reverted']) {
        const steps = { replaced: async () => {}, reverted: async () => {}, [later]: fail };
        const delivery = { deliver: fail };
        const made = withSteps({ replacing: async () => steps }).create(overwriting, OPERATOR, delivery);
        await failsWith(made, `onKeys.replacing.${later}`, reason);
      }
      const [changes] = await withSteps({ rules: { PRAISE: fail } }).permittedChanges.possibleChanges(
        [apiKey],
        principal,
      );
      assert.match(
        changes!.find(({ change }) => change === 'PRAISE')!.refusal!.reason,
        /onKeys\.rules\.PRAISE of svc-api-x/,
      );
    });

    it('that returns something wrong names it and the step', async () => {
      const { apiKey } = await create('a');
      const returning = (steps: object) => withSteps(steps);
      await failsWith(
        returning({ refuses: () => 'no' }).update(apiKey.id, { name: 'c' }, OPERATOR),
        'onKeys.refuses',
        /a string.*KeysError/s,
      );
      await failsWith(returning({ issued: () => ({}) }).issuedBy([apiKey.id], OPERATOR), 'onKeys.issued', /a list/);
      await failsWith(
        returning({ replacing: async () => ({ replaced: async () => {} }) }).create(overwriting, OPERATOR),
        'onKeys.replacing',
        /"reverted"/,
      );
    });

    it('refuses by an error with a code, also when it waits before that', async () => {
      const { apiKey } = await create('a');
      const refusal = new KeysError('FORBIDDEN', 'held by a plugin');
      const keys = withSteps({
        refuses: async ({ name }) => (name === 'a' ? refusal : undefined),
        changed: async () => {
          throw refusal;
        },
      });
      for (const work of [
        keys.update(apiKey.id, { name: 'c' }, OPERATOR),
        keys.rotate(apiKey.id, {}, OPERATOR),
        keys.changeAll([apiKey.id], { what: 'UPDATE', change: { description: 'x' } }, OPERATOR),
        keys.create(overwriting, OPERATOR),
        keys.create(input, OPERATOR),
      ])
        await assert.rejects(work, refusal);
      const { refused } = await keys.permittedChanges.planOf(
        [apiKey.id],
        { what: 'UPDATE', change: { description: 'x' } },
        OPERATOR,
      );
      assert.deepEqual(refused[0]?.refusal, { code: 'FORBIDDEN', reason: 'held by a plugin' });
    });
  });

  it('can refuse a change beforehand, and its plan', async () => {
    const { apiKey } = await create('a');
    const id = apiKey.id;
    refusing = (key, fields) =>
      key.id === id && (fields === undefined || fields.includes('name'))
        ? new KeysError('FORBIDDEN', 'held by a feature')
        : undefined;
    const held = { message: 'held by a feature' };
    heard = [];
    await assert.rejects(test.keys.update(id, { name: 'b' }, OPERATOR), held);
    await assert.rejects(test.keys.rotate(id, {}, OPERATOR), held);
    await assert.rejects(create('a', true), held);
    await assert.rejects(
      test.keys.preview({ name: 'a', permissions: ['ME:READ_OWN'], overwrite: true }, OPERATOR),
      held,
    );
    await assert.rejects(create('a'), { code: 'NAME_TAKEN', replaceable: false });
    assert.deepEqual(heard, []);
    const { principal } = await createPrincipal(test.keys, { name: 'admin', roles: ['ADMIN'] });
    const [possible] = await test.keys.permittedChanges.possibleChanges([apiKey], principal);
    const rotation = possible!.find(({ change }) => change === 'ROTATE');
    assert.equal(rotation?.refusal?.reason, held.message);
    await test.keys.update(id, { description: 'still possible' }, OPERATOR);
    await test.keys.delete([id], OPERATOR);
  });

  it('can refuse that many keys end earlier', async () => {
    const { apiKey } = await create('a');
    refusing = (_, fields) => (fields?.includes('expiresAt') ? new KeysError('FORBIDDEN', 'held') : undefined);
    const expire = () =>
      test.keys.changeAll([apiKey.id], { what: 'EXPIRE', expiresAt: '2031-01-01T00:00:00Z' }, OPERATOR);
    await assert.rejects(expire(), { message: 'held' });
    assert.equal((await test.keys.findById(apiKey.id, OPERATOR))?.expiresAt, null);
    refusing = undefined;
    await expire();
  });

  it('need not have steps for keys whose place is taken', async () => {
    const keys = new KeysService({ ...test.options, listeners: [{ replacing: async () => {} }] });
    const { apiKey } = await create('a');
    const input = { name: 'a', permissions: ['ME:READ_OWN'], overwrite: true } as const;
    const deliver = () => {
      throw new KeysError('FORBIDDEN', 'not delivered');
    };
    await assert.rejects(keys.create(input, OPERATOR, { deliver }), { message: 'not delivered' });
    assert.equal((await keys.findByName('a', OPERATOR))?.id, apiKey.id);
    assert.notEqual((await keys.create(input, OPERATOR)).apiKey.id, apiKey.id);
  });
});
