import assert from 'node:assert/strict';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { describeOnEach } from '../support/dialects.ts';
import { authenticate, createPrincipal, openTestKeys, type TestKeys } from '../support/keys.ts';

describeOnEach('a field that this version does not know', (dialect) => {
  let test: TestKeys;
  beforeEach(async () => {
    test = await openTestKeys();
  });
  afterEach(() => test.store.close());
  const isWhole = async () => {
    const { verification, comparison } = await test.keys.audit.check();
    return ['entries' in verification, comparison?.differences];
  };

  it(`stays in ${dialect} and in the log when its key is changed, and is in neither for other keys`, async () => {
    const { principal } = await createPrincipal(test.keys, { name: 'Other', roles: ['ADMIN'], owner: 'Ada' });
    const { key: secret, apiKey: key } = await test.keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
    const unknownFields = { 999: ['payments'] };
    await test.store.repository.write(async (writer) => {
      const before = (await writer.findById(key.id))!;
      const entry = { at: before.createdAt, actor: { kind: 'CLI', id: null, name: null }, action: 'UPDATE' } as const;
      const values = { before: { team: null }, after: { team: ['payments'] } };
      await writer.update([{ before, after: { ...before, unknownFields } }]);
      await writer.appendToAuditLog([{ ...entry, apiKey: { id: key.id, name: key.name }, ...values }]);
    });
    await test.keys.update(key.id, { owner: 'Ada', tags: ['env=prod'] }, principal);
    const changed = (await test.keys.findById(key.id, OPERATOR))!;
    assert.deepEqual(
      [changed.owner, changed.tags, changed.unknownFields, changed.damaged],
      ['Ada', ['env=prod'], unknownFields, undefined],
    );
    await test.keys.update(key.id, { owner: null, tags: [] }, principal);
    assert.deepEqual((await test.keys.findById(key.id, OPERATOR))!.unknownFields, unknownFields);
    assert.equal((await test.keys.findById(principal.apiKey.id, OPERATOR))!.unknownFields, undefined);
    assert.deepEqual(await isWhole(), [true, []]);
    assert.ok('principal' in (await authenticate(test.keys, secret)));
  });
});
