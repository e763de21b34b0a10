import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { findConfusableNames } from '../../../src/keys/changes/confusable-names.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { createPrincipal, openTestKeys, storedKey, type TestKeys } from '../../support/keys.ts';

/** Confusable names: with a Latin A, a Cyrillic А and a Greek Α. */
const [LATIN, CYRILLIC, GREEK] = ['Admin', '\u0410dmin', '\u0391dmin'] as const;

describeOnEach('a name that looks like others', () => {
  let test: TestKeys;
  beforeEach(async () => {
    test = await openTestKeys();
  });
  afterEach(() => test.store.close());

  it('is reported to the operator with all of them, including one of the same change, but not itself', async () => {
    const find = test.store.repository;
    await test.keys.create({ name: LATIN, roles: ['GUEST'] }, OPERATOR);
    assert.deepEqual(await findConfusableNames(OPERATOR, find, [LATIN]), []);
    assert.deepEqual(await findConfusableNames(OPERATOR, find, [CYRILLIC, 'Other', GREEK]), [
      { name: CYRILLIC, others: [LATIN] },
      { name: GREEK, others: [LATIN, CYRILLIC] },
    ]);
  });

  it('is refused to a key, and the error names the others only if the key may read all', async () => {
    const permissions = ['API_KEY:READ_OWN', 'API_KEY:CREATE_OWN', 'ME:READ_OWN'];
    const { principal } = await createPrincipal(test.keys, { name: 'Creator', permissions });
    const own = storedKey(LATIN, { createdBy: principal.apiKey.id });
    await test.store.repository.write((writer) => writer.insert([own]));
    const create = () => test.keys.create({ name: GREEK, permissions: ['ME:READ_OWN'] }, principal);
    await assert.rejects(create, { code: 'NAME_CONFUSABLE', message: /that of the API key "Admin"/ });
    await test.keys.create({ name: CYRILLIC, roles: ['GUEST'] }, OPERATOR);
    await assert.rejects(create, { code: 'NAME_CONFUSABLE', message: /that of another API key\. Choose/ });
  });
});
