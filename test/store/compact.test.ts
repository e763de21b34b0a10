import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { STEPS } from '../../src/keys/basics/steps.ts';
import { openKeys, type OpenKeys } from '../../src/service/open-keys.ts';
import { testCli } from '../support/cli.ts';
import { describeOn, describeAlwaysOnEach } from '../support/dialects.ts';
import { readDirectly } from '../support/direct.ts';
import { storedKey } from '../support/keys.ts';
import { openStore } from '../../src/store/open.ts';
import { migratedStore } from '../support/temp.ts';

const KEYS = 3000;

/** A store from which most keys were deleted. */
async function shrunken(): Promise<string> {
  const database = await migratedStore();
  const store = await openStore({ database });
  const keys = Array.from({ length: KEYS }, (_, index) => storedKey(`key ${index}`, { description: 'x'.repeat(500) }));
  await store.repository.write((writer) => writer.insert(keys));
  const ids = keys.slice(10).map(({ id }) => id);
  await store.repository.write((writer) => writer.delete(ids));
  await store.close();
  return database;
}

describeOn('sqlite', 'compacting a store', () => {
  let database: string;
  let keys: OpenKeys;
  beforeEach(async () => {
    database = await shrunken();
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

describeAlwaysOnEach('doctor --fix', (dialect) => {
  it('says what it has given back, where others use the store', async () => {
    const database = await shrunken();
    const keys = await openKeys({ database });
    const { code, stdout, stderr } = await testCli(database).run(['doctor', '--fix', '--json']);
    assert.equal(code, 0, stderr);
    const { freedBytes } = JSON.parse(stdout) as { freedBytes: number | null };
    if (dialect === 'sqlite') assert.ok(freedBytes! > 100_000, `${freedBytes}`);
    else assert.equal(freedBytes, null);
    await keys.create({ name: 'A', roles: ['GUEST'] }, OPERATOR);
    await keys.close();
    const again = await testCli(database).run(['doctor', '--fix']);
    const text = dialect === 'sqlite' ? /^Gave \d+ bytes of /m : /^Vacuumed the tables of postgres:/m;
    assert.match(again.stdout, text);
    const missing = await testCli().run(['doctor', '--fix']);
    assert.equal(missing.code, 1);
  });

  it('does the same where steps are logged', async () => {
    const steps = () => {};
    STEPS.debug.subscribe(steps);
    try {
      const keys = await openKeys({ database: await shrunken() });
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
