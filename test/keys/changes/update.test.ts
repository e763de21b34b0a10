import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { ApiKey } from '../../../src/keys/key/api-key.ts';
import type { ValidationError } from '../../../src/keys/basics/errors.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { createSecret } from '../../../src/keys/secret/secret.ts';
import { describeAlwaysOnEach } from '../../support/dialects.ts';
import { authenticate, openTestKeys, type TestKeys } from '../../support/keys.ts';

describeAlwaysOnEach('updating a key', () => {
  let test: TestKeys;
  let secret: string;
  let key: ApiKey;

  beforeEach(async () => {
    test = await openTestKeys();
    ({ key: secret, apiKey: key } = await test.keys.create(
      { name: 'CI', description: 'Nightly', roles: ['GUEST'], permissions: ['DOCKER:READ_ANY'] },
      OPERATOR,
    ));
  });
  afterEach(() => test.store.close());

  it('changes the given fields and leaves the rest', async () => {
    const cases = [
      [{ name: ' Deploy ' }, { name: 'Deploy' }],
      [{ description: ' Weekly ' }, { description: 'Weekly' }],
      [{ description: null }, { description: null }],
      [{ roles: ['viewer', 'guest'] }, { roles: ['VIEWER', 'GUEST'] }],
      [{ roles: [] }, { roles: [] }],
      [{ permissions: ['me:read_own'] }, { permissions: ['ME:READ_OWN'] }],
      [{}, {}],
    ] as const;
    const expected = { ...key };
    for (const [change, changed] of cases) {
      const before = { ...expected };
      Object.assign(expected, changed);
      assert.deepEqual(await test.keys.update(key.id, change, OPERATOR), {
        before,
        after: expected,
        confusable: [],
      });
      assert.deepEqual(await test.keys.findById(key.id, OPERATOR), expected);
    }
  });

  it('keeps the secret, which gets the new access at once', async () => {
    await test.keys.update(key.id, { permissions: ['ARRAY:READ_ANY'] }, OPERATOR);
    const result = await authenticate(test.keys, secret);
    assert.ok('principal' in result);
    assert.equal(result.principal.access.has('ARRAY', 'READ_ANY'), true);
    assert.equal(result.principal.access.has('DOCKER', 'READ_ANY'), false);
  });

  it('lets the key be found by its new texts and no longer by its old ones', async () => {
    await test.keys.update(key.id, { name: 'Deploy', description: 'Weekly' }, OPERATOR);
    const found = async (search: string) => (await test.keys.list({ search }, OPERATOR)).keys.length;
    assert.deepEqual(
      [await found('deploy'), await found('weekly'), await found('CI'), await found('nightly')],
      [1, 1, 0, 0],
    );
    assert.equal(await test.keys.findByName('CI', OPERATOR), undefined);
  });

  it('may give a key its own name again, in another form too, but not that of another key', async () => {
    await test.keys.create({ name: 'Other', roles: ['GUEST'] }, OPERATOR);
    assert.deepEqual(await test.keys.update(key.id, { name: ' CI ' }, OPERATOR), {
      before: key,
      after: key,
      confusable: [],
    });
    const taken = { code: 'NAME_TAKEN', replaceable: false };
    await assert.rejects(test.keys.update(key.id, { name: 'Other' }, OPERATOR), taken);
    assert.deepEqual(await test.keys.findById(key.id, OPERATOR), key);
  });

  it('may not take away the last role and permission', async () => {
    await assert.rejects(test.keys.update(key.id, { roles: [], permissions: [] }, OPERATOR), { code: 'NO_GRANTS' });
    await test.keys.update(key.id, { roles: [] }, OPERATOR);
    await assert.rejects(test.keys.update(key.id, { permissions: [] }, OPERATOR), { code: 'NO_GRANTS' });
  });

  it('reports all issues together', async () => {
    const change = { name: '-', description: '\n', roles: ['X'], permissions: [''] };
    await assert.rejects(test.keys.update(key.id, change, OPERATOR), (error: ValidationError) => {
      assert.deepEqual(
        error.issues.map(({ code }) => code),
        ['NAME_INVALID', 'DESCRIPTION_INVALID', 'ROLE_INVALID', 'PERMISSION_INVALID'],
      );
      return true;
    });
  });

  it('keeps the time at which it was disabled where it is disabled again', async () => {
    const { after } = await test.keys.setEnabled(key.id, false, OPERATOR);
    test.time.now += 1000;
    assert.deepEqual(await test.keys.setEnabled(key.id, false, OPERATOR), { before: after, after });
  });

  it('refuses an id that no store takes', async () => {
    await assert.rejects(test.keys.update('\0', { name: 'X' }, OPERATOR), { code: 'INPUT_INVALID' });
  });

  it('says which key does not exist, without showing a secret that was given as its id', async () => {
    const id = randomUUID();
    await assert.rejects(test.keys.update(id, { name: 'X' }, OPERATOR), {
      code: 'NOT_FOUND',
      message: `There is no API key with the id "${id}".`,
    });
    const { text, publicId } = createSecret((size) => new Uint8Array(size));
    await assert.rejects(test.keys.update(text, { name: 'X' }, OPERATOR), {
      message: `There is no API key with the id "svc_${publicId}_…".`,
    });
  });
});
