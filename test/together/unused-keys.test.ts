import assert from 'node:assert/strict';
import { Declarations } from '../../src/features/apply/apply.ts';
import { UnusedKeys } from '../../src/features/unused-keys/unused-keys.ts';
import { importKeys } from '../features/transfer/support/import-keys.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { UNIT_MS } from '../../src/keys/basics/duration.ts';
import { describeOnEach } from '../support/dialects.ts';
import { createPrincipal, jsonLines, openTestKeys, type TestKeys } from '../support/keys.ts';

describeOnEach('keys that are not used', () => {
  let test: TestKeys;
  beforeEach(async () => {
    test = await openTestKeys({ policy: { disableUnused: '60d' } });
  });
  afterEach(() => test.store.close());
  const days = (count: number) => void (test.time.now += count * UNIT_MS.d);
  const pass = async () => {
    for await (const _ of test.keys.feature(UnusedKeys).disableUnused());
    const { keys } = await test.keys.list({ status: 'DISABLED' }, OPERATOR);
    return keys.map(({ name }) => name);
  };

  it('have as long again once they are imported, however old they are', async () => {
    const imported = { name: 'Imported', secret: 'a'.repeat(30), roles: ['VIEWER'], createdAt: '2020-01-01T00:00:00Z' };
    await importKeys(test.keys, jsonLines(imported));
    days(59);
    assert.deepEqual(await pass(), []);
    days(2);
    assert.deepEqual(await pass(), ['Imported']);
  });

  it('have as long again once they are declared with another end', async () => {
    await test.keys.create({ name: 'Declared', roles: ['VIEWER'], expiresIn: '30d' }, OPERATOR);
    days(100);
    const expiresAt = test.time.now + 100 * UNIT_MS.d;
    const declared = { name: 'Declared', description: null, roles: ['VIEWER'], permissions: [], expiresAt };
    await test.keys.feature(Declarations).apply([declared], {}, OPERATOR);
    assert.deepEqual(await pass(), []);
    days(61);
    assert.deepEqual(await pass(), ['Declared']);
  });

  it('do not count as known to the operator since: another key may still hold the secret', async () => {
    const { principal } = await createPrincipal(test.keys, { name: 'Creator', roles: ['ADMIN'] });
    const { apiKey: key } = await test.keys.create({ name: 'Plain', roles: ['GUEST'] }, OPERATOR);
    await test.keys.update(key.id, { name: 'Prepared' }, principal);
    await test.keys.finishActivity();
    days(61);
    await pass();
    const declared = {
      name: 'Prepared',
      description: null,
      roles: ['ADMIN'],
      permissions: [],
      expiresAt: null,
      enabled: true,
    };
    await assert.rejects(test.keys.feature(Declarations).plan([declared], {}, OPERATOR), { code: 'TAKEOVER_REFUSED' });
  });
});
