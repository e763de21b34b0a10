import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { changeDirectly, unlockAuditLog } from '../../support/direct.ts';
import { openTestKeys, type TestKeys, withAuditLog } from '../../support/keys.ts';
import { until } from '../../support/until.ts';

describeOnEach('the chain of the audit log, as far as a server has verified it,', () => {
  let test: TestKeys;
  beforeEach(async () => {
    test = await openTestKeys();
  });
  afterEach(() => test.store.close());

  const chain = (keys: Pick<TestKeys['keys'], 'audit'> = test.keys) => keys.audit.chain(OPERATOR);
  const addEntries = (length: number) => {
    const draft = {
      at: test.time.now,
      actor: { kind: 'CLI', id: null, name: 'tester' },
      action: 'CREATE',
      apiKey: null,
      before: null,
      after: null,
    } as const;
    const drafts = Array.from({ length }, () => draft);
    return test.store.repository.write((writer) => writer.appendToAuditLog(drafts));
  };
  const tamper = async (...statements: string[]) => {
    await unlockAuditLog(test.database);
    await changeDirectly(test.database, ...statements);
  };

  it('is nothing while the log is empty, and then as new as the log', async () => {
    assert.deepEqual(await chain(), { verified: null, newest: 0, failure: null });
    await addEntries(3);
    const { verified, newest, failure } = await chain();
    assert.deepEqual([verified!.number, verified!.at, newest, failure], [3, test.time.now, 3, null]);
    const result = (await test.keys.audit.check()).verification;
    assert.equal('hash' in result && result.hash, verified!.hash);
  });

  it('is verified a page at a time, goes on by itself, and reads nothing twice', async () => {
    await addEntries(2500);
    let [read, asked] = [0, 0];
    const counting = await openTestKeys({
      database: test.database,
      repository: withAuditLog((log) => ({
        ...log,
        async find(query) {
          const entries = await log.find(query);
          [read, asked] = [read + entries.length, asked + 1];
          return entries;
        },
      })),
    });
    const first = await Promise.all([chain(counting.keys), chain(counting.keys)]);
    assert.deepEqual(
      first.map(({ verified, newest }) => [verified!.number, newest]),
      [
        [1000, 2500],
        [1000, 2500],
      ],
    );
    await until(() => read === 2500);
    await addEntries(1);
    // A new configuration keeps what was verified.
    assert.equal((await chain(counting.keys.withCatalog(counting.options.catalog))).verified!.number, 2501);
    assert.equal((await chain(counting.keys)).verified!.number, 2501);
    assert.deepEqual([read, asked], [2501, 4]);
    await counting.store.close();
  });

  it('starts again after the pruned entries', async () => {
    await addEntries(3);
    test.time.now += 3_600_000;
    await addEntries(2);
    await test.keys.audit.prune('30m');
    const { verified, failure } = await chain();
    assert.deepEqual([verified!.number, failure], [6, null]);
    test.time.now += 3_600_000;
    await test.keys.audit.prune('30m');
    assert.equal((await chain()).verified!.number, 7);
  });

  it('names the first entry that was changed after it was written, and goes no further', async () => {
    await addEntries(5);
    await tamper("update audit_log set actor_name = 'somebody' where number = 3");
    const broken = { broken: 3, reason: 'was changed after it was written' };
    assert.deepEqual(await chain(), { verified: null, newest: 5, failure: broken });
    assert.deepEqual((await chain()).failure, broken);
  });

  it('sees that the end was cut off, or that the start was not deleted by svc-api', async () => {
    await addEntries(5);
    await chain();
    await tamper('delete from audit_log where number = 5', 'update audit_head set number = 4');
    assert.deepEqual((await chain()).failure, { broken: 5, reason: 'is missing: the log ends before it' });
    await tamper("insert into audit_start values (1, 2, 'x')");
    assert.deepEqual((await chain()).failure, { broken: 2, reason: 'was not deleted by svc-api' });
  });
});
