import assert from 'node:assert/strict';
import { OPERATOR, type Principal } from '../../../src/keys/authorization/principal.ts';
import { createCatalog } from '../../../src/keys/permissions/catalog.ts';
import { KeysService } from '../../../src/keys/service/service.ts';
import { UNIT_MS } from '../../../src/keys/basics/duration.ts';
import { KEYS_IN_USE, UnusedKeys } from '../../../src/features/unused-keys/unused-keys.ts';
import { openStore } from '../../../src/store/open.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { authenticate, createPrincipal, openTestKeys, storedKey, type TestKeys, withPort } from '../../support/keys.ts';
import { STORES } from '../../support/features.ts';

const POLICY = { disableUnused: '60d' };

describeOnEach('keys that are not used', () => {
  let test: TestKeys;
  const pass = async (keys: KeysService = test.keys) => {
    let count = 0;
    for await (const disabled of keys.feature(UnusedKeys).disableUnused()) count += disabled;
    return count;
  };
  const create = (name: string, by: Principal | typeof OPERATOR = OPERATOR) =>
    createPrincipal(test.keys, { name, roles: ['ADMIN'] }, by);
  const disabled = async () => {
    const { keys } = await test.keys.list({ first: 500, status: 'DISABLED' }, OPERATOR);
    return keys.map(({ name }) => name).toSorted();
  };
  const days = (count: number) => void (test.time.now += count * UNIT_MS.d);
  const use = async (secret: string) => {
    await authenticate(test.keys, secret);
    await test.keys.finishActivity();
  };

  beforeEach(async () => {
    test = await openTestKeys({ policy: POLICY });
  });
  afterEach(() => test.store.close());

  it('for as long as the policy says are disabled, with an entry of the policy in the audit log', async () => {
    const used = await create('Used');
    await create('Once');
    const { apiKey: never } = await test.keys.create({ name: 'Never', roles: ['VIEWER'] }, OPERATOR);
    await test.keys.finishActivity();
    days(59);
    await use(used.secret);
    assert.equal(await pass(), 0);
    days(1);
    test.time.now += 1;
    assert.equal(await pass(), 2);
    assert.deepEqual(await disabled(), ['Never', 'Once']);
    const [entry] = await test.keys.audit.read({ apiKey: never.id }, OPERATOR);
    const { actor, action, before, after } = entry!;
    assert.deepEqual(
      { actor, action, before, after },
      {
        actor: { kind: 'POLICY', id: null, name: 'disableUnused: 60d' },
        action: 'DISABLE',
        before: { disabledAt: null },
        after: { disabledAt: new Date(test.time.now).toISOString() },
      },
    );
    const { verification, comparison } = await test.keys.audit.check();
    assert.equal('broken' in verification, false);
    assert.equal(comparison?.differences.length, 0);
    assert.equal(await pass(), 0);
  });

  it('work on without such a rule', async () => {
    await create('Old');
    days(1000);
    assert.equal(await pass(test.keys.withCatalog(createCatalog())), 0);
  });

  it('are distinguished from keys that a person disabled, until a person disables them', async () => {
    const [{ principal: one }, { principal: other }] = [await create('One'), await create('Other')];
    await test.keys.setEnabled(other.apiKey.id, false, OPERATOR);
    days(80);
    await pass();
    const found = async () => {
      const { keys } = await test.keys.list({}, OPERATOR);
      const ids = await test.keys.disabledByPolicy(keys);
      return keys.filter(({ id }) => ids.has(id)).map(({ name }) => name);
    };
    assert.deepEqual(await found(), ['One']);
    await test.keys.setEnabled(one.apiKey.id, true, OPERATOR);
    days(1);
    await test.keys.setEnabled(one.apiKey.id, false, OPERATOR);
    assert.deepEqual(await found(), []);
  });

  it('have as long again once they are enabled or rotated', async () => {
    const [{ principal: enabled }, { principal: rotated }] = [await create('Enabled'), await create('Rotated')];
    days(50);
    await test.keys.rotate(rotated.apiKey.id, { grace: '1h' }, OPERATOR);
    days(11);
    assert.equal(await pass(), 1);
    await test.keys.setEnabled(enabled.apiKey.id, true, OPERATOR);
    assert.equal(await pass(), 0);
    days(59);
    await pass();
    assert.deepEqual(await disabled(), ['Rotated']);
    days(2);
    await pass();
    assert.deepEqual(await disabled(), ['Enabled', 'Rotated']);
  });

  it('have as long again once they work again by another end, or as they are adopted', async () => {
    const { principal: creator } = await create('Creator');
    const { principal: child } = await create('Child', creator);
    const ends = { roles: ['VIEWER'], expiresIn: '30d' };
    const { apiKey: ended } = await test.keys.create({ name: 'Ended', ...ends }, OPERATOR);
    const { principal: idle } = await create('Idle');
    const { principal: below } = await createPrincipal(test.keys, { name: 'Below', ...ends }, idle);
    const description = 'Not "expiresAt":1 at all';
    const { apiKey: described } = await test.keys.create({ name: 'Described', roles: ['VIEWER'] }, OPERATOR);
    const { apiKey: moved } = await test.keys.create({ name: 'Moved', roles: ['VIEWER'], expiresIn: '200d' }, OPERATOR);
    await test.keys.setEnabled(creator.apiKey.id, false, OPERATOR);
    days(59);
    await test.keys.update(described.id, { description }, OPERATOR);
    await test.keys.update(moved.id, { expiresIn: '200d' }, OPERATOR);
    days(41);
    await test.keys.update(ended.id, { expiresIn: '100d' }, OPERATOR);
    await test.keys.adopt(child.apiKey.id, OPERATOR);
    await test.keys.update(below.apiKey.id, { expiresIn: '100d' }, OPERATOR);
    await pass();
    assert.deepEqual(await disabled(), ['Creator', 'Described', 'Moved']);
    days(61);
    assert.equal(await pass(), 4);
  });

  it('stay where a child key of theirs is used, and go with it', async () => {
    const { principal: root } = await create('Root');
    const { principal: child } = await create('Child', root);
    const { secret } = await create('Grandchild', child);
    await create('Idle', root);
    await test.keys.finishActivity();
    days(61);
    await use(secret);
    assert.equal(await pass(), 1);
    assert.deepEqual(await disabled(), ['Idle']);
    days(61);
    await pass();
    assert.deepEqual(await disabled(), ['Child', 'Grandchild', 'Idle', 'Root']);
  });

  it('are disabled even if no key can manage keys any more: the command line can', async () => {
    const { principal } = await create('Last');
    days(61);
    assert.equal(await pass(), 1);
    await test.keys.setEnabled(principal.apiKey.id, true, OPERATOR);
    assert.deepEqual(await disabled(), []);
  });

  it('are disabled piece by piece, each once, though several servers do so at the same time', async () => {
    const count = 450;
    const old = Array.from({ length: count }, (_, index) =>
      storedKey(`00000000-0000-4000-8000-${String(index).padStart(12, '0')}`, { name: `Key ${index}` }),
    );
    await test.store.repository.write((writer) => writer.insert(old));
    const store = await openStore(
      { database: test.database },
      { features: STORES, leaseClock: async () => test.time.now },
    );
    try {
      const other = new KeysService({ ...test.options, repository: store.repository });
      const counts = await Promise.all([pass(), pass(other)]);
      assert.equal(counts[0] + counts[1], count);
      const pieces = [];
      for await (const piece of test.keys.feature(UnusedKeys).disableUnused()) pieces.push(piece);
      assert.deepEqual(pieces, [0]);
    } finally {
      await store.close();
    }
    const entries = await test.keys.audit.read({ action: 'DISABLE', first: 500 }, OPERATOR);
    assert.equal(new Set(entries.map(({ apiKey }) => apiKey!.id)).size, entries.length);
    assert.equal((await disabled()).length, count);
  });

  it('are looked at again in the transaction that disables them', async () => {
    const { secret } = await create('Just in time');
    await test.keys.finishActivity();
    days(61);
    const { repository } = test.options;
    const used = withPort(repository, KEYS_IN_USE, (real) => ({
      find: async (...asked) => {
        const found = await real.find(...asked);
        await use(secret);
        return found;
      },
    }));
    const keys = new KeysService({ ...test.options, repository: used });
    assert.equal(await pass(keys), 0);
    assert.deepEqual(await disabled(), []);
  });
});
