import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { ApiKey } from '../../../src/keys/key/api-key.ts';
import { NO_VALUES } from '../../../src/keys/key/fields.ts';
import type { NewKey } from '../../../src/keys/key/key-change.ts';
import { KeysError, ValidationError } from '../../../src/keys/basics/errors.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { describeAlwaysOnEach } from '../../support/dialects.ts';
import { authenticate, createPrincipal, openTestKeys, type TestKeys } from '../../support/keys.ts';
import type { NewSecret } from '../../../src/keys/changes/delivery.ts';
import type { CreatedKey } from '../../../src/keys/service/management.ts';
import { failDelivery } from '../../support/delivery.ts';

describeAlwaysOnEach('creating a key', () => {
  let test: TestKeys;
  const names = async () => (await test.keys.list({}, OPERATOR)).keys.map(({ name }) => name).toSorted();
  const bearerOf = async (secret: string) => {
    const result = await authenticate(test.keys, secret);
    return 'principal' in result ? result.principal.apiKey : result.refused;
  };

  beforeEach(async () => {
    test = await openTestKeys();
  });
  afterEach(() => test.store.close());

  it('gives a secret that works, and stores the input in normal form', async () => {
    const {
      key: secret,
      apiKey: key,
      replaced,
    } = await test.keys.create(
      {
        name: ' Cafe\u0301 ',
        description: ' For CI ',
        owner: ' Cafe\u0301 team ',
        tags: [' team = payments ', 'env=prod', 'env=prod'],
        roles: ['viewer', 'VIEWER'],
        permissions: ['docker:update_any'],
      },
      OPERATOR,
    );
    const expected: ApiKey = {
      ...NO_VALUES,
      id: key.id,
      name: 'Caf\u00e9',
      description: 'For CI',
      owner: 'Caf\u00e9 team',
      tags: ['env=prod', 'team=payments'],
      metadata: null,
      roles: ['VIEWER'],
      permissions: ['DOCKER:UPDATE_ANY'],
      publicId: secret.slice(4, 16),
      createdAt: test.time.now,
      createdBy: null,
      expiresAt: null,
      disabledAt: null,
      managed: false,
      rotation: null,
    };
    assert.match(key.id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    assert.deepEqual(key, expected);
    assert.deepEqual(replaced, []);
    assert.deepEqual(await bearerOf(secret), expected);
    assert.deepEqual(await test.keys.findByName('Cafe\u0301', OPERATOR), expected);
  });

  it('reports all issues together and stores nothing', async () => {
    const input = {
      name: 'a-b',
      description: 'a\nb',
      owner: 'a\nb',
      tags: ['env'],
      roles: ['BOSS'],
      permissions: ['DOCKER'],
    };
    await assert.rejects(test.keys.create(input, OPERATOR), (error: ValidationError) => {
      assert.ok(error instanceof ValidationError);
      assert.deepEqual(
        error.issues.map(({ code }) => code),
        ['NAME_INVALID', 'DESCRIPTION_INVALID', 'OWNER_INVALID', 'TAG_INVALID', 'ROLE_INVALID', 'PERMISSION_INVALID'],
      );
      assert.equal(error.code, 'NAME_INVALID');
      assert.equal(error.message.split('\n').length, 6);
      return true;
    });
    assert.deepEqual(await names(), []);
  });

  it('refuses a name that is taken, also in another form, and leaves that key alone', async () => {
    const { key: secret, apiKey: key } = await test.keys.create({ name: 'Caf\u00e9', roles: ['GUEST'] }, OPERATOR);
    await assert.rejects(test.keys.create({ name: ' Cafe\u0301', roles: ['ADMIN'] }, OPERATOR), {
      code: 'NAME_TAKEN',
      replaceable: true,
      message: 'An API key named "Caf\u00e9" already exists.',
    });
    assert.deepEqual(await bearerOf(secret), key);
  });

  it('distinguishes names by case', async () => {
    await test.keys.create({ name: 'ci', roles: ['GUEST'] }, OPERATOR);
    await test.keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
    assert.deepEqual(await names(), ['CI', 'ci']);
  });

  it('is reverted where its secret cannot be delivered', async () => {
    const { key: secret } = await failToCreate({ name: 'CI', roles: ['GUEST'] });
    assert.equal(await bearerOf(secret), 'unknown');
    assert.deepEqual(await names(), []);
  });

  it('prepares the delivery before the commit, and does nothing where that fails', async () => {
    const prepare = () => {
      throw new KeysError('OUTPUT_FAILED', 'No room.');
    };
    const deliver = () => assert.fail('nothing was committed');
    const create = test.keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR, { prepare, deliver });
    await assert.rejects(create, { code: 'OUTPUT_FAILED', message: 'No room.' });
    assert.deepEqual(await names(), []);
  });

  it('can be previewed by the same rules, with nothing written', async () => {
    await test.keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
    await assert.rejects(test.keys.preview({ name: 'CI', roles: ['GUEST'] }, OPERATOR), { code: 'NAME_TAKEN' });
    const input = { name: ' CI', permissions: ['DOCKER:READ_ANY'], expiresIn: '1h', overwrite: true };
    const { replaced, confusable, ...preview } = await test.keys.preview(input, OPERATOR);
    assert.deepEqual(confusable, []);
    assert.deepEqual(preview, {
      name: 'CI',
      description: null,
      owner: null,
      tags: [],
      metadata: null,
      roles: [],
      permissions: ['DOCKER:READ_ANY'],
      limits: [],
      allowFrom: null,
      expiresAt: test.time.now + 3_600_000,
      effectivePermissions: ['DOCKER:READ_ANY', 'DOCKER:READ_OWN'],
    });
    assert.deepEqual(
      replaced.map(({ roles }) => roles),
      [['GUEST']],
    );
    const { principal } = await createPrincipal(test.keys, { name: 'Maker', permissions: ['API_KEY:CREATE_OWN'] });
    await assert.rejects(test.keys.preview({ name: 'x', roles: ['GUEST'] }, principal), { code: 'FORBIDDEN' });
    assert.deepEqual(await names(), ['CI', 'Maker']);
  });

  it('with overwrite simply creates where there is no such key', async () => {
    const {
      key: secret,
      apiKey: key,
      replaced,
    } = await test.keys.create({ name: 'CI', roles: ['GUEST'], overwrite: true }, OPERATOR);
    assert.deepEqual(replaced, []);
    assert.deepEqual(await bearerOf(secret), key);
  });

  describe('over one of the same name', () => {
    const admin = { name: 'Parent', roles: ['ADMIN'] };
    let old: NewSecret;
    let child: NewSecret;

    beforeEach(async () => {
      const parent = await createPrincipal(test.keys, admin);
      old = { key: parent.secret, apiKey: parent.principal.apiKey };
      test.time.now += 1;
      child = await test.keys.create({ name: 'Child', roles: ['GUEST'] }, parent.principal);
    });

    it('gives a new secret and id; the old secret stops working', async () => {
      const { key: secret, apiKey: key } = await test.keys.create(
        { name: 'Parent', roles: ['GUEST'], overwrite: true },
        OPERATOR,
      );
      assert.notEqual(secret, old.key);
      assert.notEqual(key.id, old.apiKey.id);
      assert.notEqual(key.publicId, old.apiKey.publicId);
      assert.equal(await bearerOf(old.key), 'unknown');
      assert.deepEqual(await bearerOf(secret), key);
    });

    it('deletes its child keys, and says so', async () => {
      const { replaced } = await test.keys.create({ ...admin, overwrite: true }, OPERATOR);
      assert.deepEqual(
        replaced.map(({ name }) => name),
        ['Parent', 'Child'],
      );
      assert.equal(await bearerOf(child.key), 'unknown');
      assert.deepEqual(await names(), ['Parent']);
    });

    it('is reverted where its secret cannot be delivered: the old key and its children work again', async () => {
      const { key: secret } = await failToCreate({ name: 'Parent', roles: ['GUEST'], overwrite: true });
      assert.equal(await bearerOf(secret), 'unknown');
      assert.deepEqual(await bearerOf(old.key), old.apiKey);
      assert.deepEqual(await bearerOf(child.key), child.apiKey);
    });

    it('is not reverted where the new key was replaced or deleted meanwhile', async () => {
      const input = { ...admin, overwrite: true };
      let second: NewSecret | undefined;
      await failToCreate(input, async () => (second = await test.keys.create(input, OPERATOR)));
      assert.deepEqual(await bearerOf(second!.key), second!.apiKey);
      await failToCreate(input, ({ apiKey: key }) => test.keys.delete([key.id], OPERATOR));
      assert.deepEqual(await names(), []);
    });

    it('is reverted without the old key where its creator was deleted meanwhile', async () => {
      const { key: secret } = await failToCreate({ name: 'Child', roles: ['GUEST'], overwrite: true }, () =>
        test.keys.delete([old.apiKey.id], OPERATOR),
      );
      assert.equal(await bearerOf(secret), 'unknown');
      assert.deepEqual(await names(), []);
    });

    it('takes the place of its creator where a key replaces itself', async () => {
      const parent = await createPrincipal(test.keys, { name: 'Middle', roles: ['ADMIN'] }, await principalOf(old.key));
      const { apiKey: key } = await test.keys.create(
        { name: 'Middle', roles: ['GUEST'], overwrite: true },
        parent.principal,
      );
      assert.equal(key.createdBy, old.apiKey.id);
      assert.deepEqual(await names(), ['Child', 'Middle', 'Parent']);
    });

    it('takes that place also where the keys that it created go with it', async () => {
      const { principal } = await createPrincipal(
        test.keys,
        { name: 'Middle', roles: ['ADMIN'] },
        await principalOf(old.key),
      );
      await test.keys.create({ name: 'Grandchild', roles: ['GUEST'] }, principal);
      const { apiKey: key } = await test.keys.create({ name: 'Middle', roles: ['GUEST'], overwrite: true }, principal);
      assert.equal(key.createdBy, old.apiKey.id);
    });

    it('is created by the key that asks for it, even if another had created the old one', async () => {
      const { principal } = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] });
      const { apiKey: key } = await test.keys.create({ ...admin, overwrite: true }, principal);
      assert.equal(key.createdBy, principal.apiKey.id);
    });

    it('changes nothing when it is refused', async () => {
      const by = await createPrincipal(test.keys, {
        name: 'Maker',
        permissions: ['API_KEY:CREATE_ANY', 'ME:READ_OWN'],
      });
      await assert.rejects(
        test.keys.create({ name: 'Parent', permissions: ['ME:READ_OWN'], overwrite: true }, by.principal),
        {
          code: 'FORBIDDEN',
          message: 'This key lacks API_KEY:DELETE_ANY.',
        },
      );
      assert.deepEqual(await bearerOf(old.key), old.apiKey);
      assert.deepEqual(await bearerOf(child.key), child.apiKey);
    });
  });

  it('distinguishes a malformed secret from an unknown one, for the log', async () => {
    const { key: secret } = await failToCreate({ name: 'CI', roles: ['GUEST'] });
    assert.deepEqual(await authenticate(test.keys, secret), { refused: 'unknown', publicId: secret.slice(4, 16) });
    assert.deepEqual(await authenticate(test.keys, `${secret}x`), { refused: 'malformed' });
    assert.deepEqual(await authenticate(test.keys, randomUUID()), { refused: 'malformed' });
  });

  function failToCreate(input: NewKey, meanwhile?: (created: CreatedKey) => Promise<unknown>): Promise<CreatedKey> {
    return failDelivery((delivery) => test.keys.create(input, OPERATOR, delivery), meanwhile);
  }

  async function principalOf(secret: string) {
    const result = await authenticate(test.keys, secret);
    assert.ok('principal' in result);
    return result.principal;
  }
});
