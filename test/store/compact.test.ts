import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { STEPS } from '../../src/keys/basics/steps.ts';
import { openKeys, type OpenKeys } from '../../src/service/open-keys.ts';
import { describeOn, describeAlwaysOnEach } from '../support/dialects.ts';
import { readDirectly } from '../support/direct.ts';
import { shrunkenStore } from '../support/shrunken-store.ts';

describeOn('sqlite', 'compacting a store', () => {
  let database: string;
  let keys: OpenKeys;
  beforeEach(async () => {
    database = await shrunkenStore();
    keys = await openKeys({ database });
  });
  afterEach(() => keys.close());

  it('makes the file smaller in pieces, between which others change keys, and leaves all else as it is', async () => {
    const before = statSync(database).size;
    const compacting = keys.compact();
    let [pieces, step] = [0, await compacting.next()];
    while (!step.done) {
      pieces += 1;
      await keys.create({ name: `meanwhile ${pieces}`, roles: ['GUEST'] }, OPERATOR);
      step = await compacting.next();
    }
    assert.ok(pieces > 1, `${pieces}`);
    const after = statSync(database).size;
    assert.ok(after < before / 2, `${after} of ${before}`);
    assert.ok(step.value! > before / 2, `${step.value}`);
    const found = await keys.list({ search: 'key 7' }, OPERATOR);
    assert.deepEqual(
      found.keys.map(({ name }) => name),
      ['key 7'],
    );
    assert.deepEqual(await readDirectly(database, 'pragma integrity_check'), [{ integrity_check: 'ok' }]);
    const verified = (await keys.audit.check()).verification;
    assert.ok('entries' in verified && verified.entries === pieces);
  });

  it('is left out where less is free than is asked for', async () => {
    const compacting = keys.compact(0.99);
    assert.deepEqual(await compacting.next(), { done: true, value: 0 });
  });
});

describeAlwaysOnEach('compacting a store', (dialect) => {
  it('does the same where steps are logged', async () => {
    const steps = () => {};
    STEPS.debug.subscribe(steps);
    try {
      const keys = await openKeys({ database: await shrunkenStore() });
      const compacting = keys.compact();
      let step = await compacting.next();
      while (!step.done) step = await compacting.next();
      assert.equal(step.value === null, dialect === 'postgres');
      await keys.close();
    } finally {
      STEPS.debug.unsubscribe(steps);
    }
  });
});
