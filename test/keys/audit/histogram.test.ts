import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { authenticate, createPrincipal, openTestKeys, type TestKeys } from '../../support/keys.ts';

const HOUR = 3_600_000;

describeOnEach('counting the audit log', () => {
  let test: TestKeys;
  let began: number;
  beforeEach(async () => {
    test = await openTestKeys();
    began = test.time.now;
    for (const [hour, name] of [
      [0, 'One'],
      [0, 'Two'],
      [2, 'Three'],
      [30, 'Four'],
    ] as const) {
      test.time.now = began + hour * HOUR + 60_000;
      await test.keys.create({ name, roles: ['GUEST'] }, OPERATOR);
    }
    await authenticate(test.keys, 'nonsense', '192.0.2.1');
    await test.keys.finishActivity();
  });
  afterEach(() => test.store.close());

  const since = '2030-01-01T00:00:00Z';
  const count = async (request: Partial<Parameters<TestKeys['keys']['audit']['count']>[0]>, actor = OPERATOR) => {
    const { counts, isComplete } = await test.keys.audit.count({ since, by: 'HOUR', ...request }, actor as never);
    assert.equal(isComplete, true);
    return counts.map(({ start, entries, refused }) => [(start - began) / HOUR, entries, refused]);
  };

  it('returns how many there are in each hour or day, and how many were refusals', async () => {
    assert.deepEqual(await count({}), [
      [0, 2, 0],
      [2, 1, 0],
      [30, 2, 1],
    ]);
    assert.deepEqual(await count({ by: 'DAY' }), [
      [0, 3, 0],
      [24, 2, 1],
    ]);
  });

  it('counts only matching ones, from the start of an hour up to a time', async () => {
    assert.deepEqual(await count({ outcome: 'refused' }), [[30, 1, 1]]);
    assert.deepEqual(await count({ outcome: 'DONE', apiKey: 'Four' }), [[30, 1, 0]]);
    assert.deepEqual(await count({ action: 'CREATE', actor: 'nobody' }), []);
    assert.deepEqual(await count({ since: '2030-01-01T02:30:00Z', until: '2030-01-02T00:00:00Z' }), [[2, 1, 0]]);
    await assert.rejects(
      count({ outcome: 'perhaps' }),
      /"perhaps" is not an outcome\. The outcomes are DONE and REFUSED/,
    );
  });

  it('counts those that a key may read, and none for others', async () => {
    const auditor = await createPrincipal(test.keys, { name: 'Auditor', permissions: ['LOGS:READ_ANY'] });
    // Entries about no key.
    assert.deepEqual(await count({}, auditor.principal as never), [[30, 1, 1]]);
    const { principal } = await createPrincipal(test.keys, { name: 'Other', permissions: ['API_KEY:READ_ANY'] });
    await assert.rejects(count({}, principal as never), { code: 'FORBIDDEN' });
    await assert.rejects(test.keys.audit.chain(principal), { code: 'FORBIDDEN' });
  });

  it('counts the newest if there are too many, after the pruned ones', async () => {
    test.time.now = began + 31 * HOUR;
    await test.keys.audit.prune('2030-01-01T01:00:00Z');
    assert.deepEqual(await count({}), [
      [2, 1, 0],
      [30, 2, 1],
      [31, 1, 0],
    ]);
  });
});
