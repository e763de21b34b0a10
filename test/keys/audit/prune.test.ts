import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { changeDirectly, readDirectly, unlockAuditLog } from '../../support/direct.ts';
import { openTestKeys, type TestKeys, withAuditLog } from '../../support/keys.ts';

const HOUR = 3_600_000;

describeOnEach('pruning the audit log', () => {
  let test: TestKeys;
  beforeEach(async () => {
    test = await openTestKeys();
    for (const name of ['A', 'B', 'C', 'D']) {
      await test.keys.create({ name, roles: ['GUEST'] }, OPERATOR);
      test.time.now += HOUR;
    }
  });
  afterEach(() => test.store.close());
  const entries = async () => (await test.keys.audit.read({ first: 500 }, OPERATOR)).toReversed();
  const verified = async () => {
    const result = (await test.keys.audit.check()).verification;
    if ('broken' in result) return [result.broken, result.reason];
    return 'entries' in result && result.entries;
  };

  it('deletes entries before a time, records that, and leaves a verified log', async () => {
    const [, last] = await entries();
    const { number, hash } = last!;
    assert.deepEqual(await test.keys.audit.findPrunable('2h'), { entries: 2, last: { number, hash } });
    assert.deepEqual(await test.keys.audit.prune('2h'), { entries: 2, last: { number, hash } });
    const left = await entries();
    assert.deepEqual(
      left.map((entry) => [entry.number, entry.action]),
      [
        [3, 'CREATE'],
        [4, 'CREATE'],
        [5, 'PRUNE'],
      ],
    );
    assert.deepEqual(
      [left[2]!.actor, left[2]!.apiKey, left[2]!.after],
      [{ kind: 'CLI', id: null, name: 'tester' }, null, { entries: 2, number: 2, hash }],
    );
    assert.equal(await verified(), 3);
  });

  it('goes on: again, and down to nothing but its own record', async () => {
    assert.equal((await test.keys.audit.prune('3h'))?.entries, 1);
    assert.equal((await test.keys.audit.prune('1h'))?.entries, 2);
    assert.equal(await verified(), 3);
    test.time.now += HOUR;
    await test.keys.audit.prune('1s');
    assert.deepEqual([(await entries()).map(({ action }) => action), await verified()], [['PRUNE'], 1]);
    await test.keys.create({ name: 'E', roles: ['GUEST'] }, OPERATOR);
    assert.equal(await verified(), 2);
  });

  it('changes nothing where nothing is that old', async () => {
    assert.equal(await test.keys.audit.prune('9h'), undefined);
    assert.equal(await verified(), 4);
    await assert.rejects(test.keys.audit.prune('yesterday'), { code: 'INPUT_INVALID' });
  });

  it('keeps an entry that follows a newer one: the clock was set back', async () => {
    test.time.now -= 4 * HOUR;
    await test.keys.create({ name: 'Back', roles: ['GUEST'] }, OPERATOR);
    test.time.now += 4 * HOUR;
    assert.equal((await test.keys.audit.prune('3h'))?.entries, 1);
    assert.equal(await verified(), 5);
  });

  it('opens no other way to delete entries', async () => {
    await test.keys.audit.prune('2h');
    for (const number of [3, 4, 5])
      await assert.rejects(
        changeDirectly(test.database, `delete from audit_log where number = ${number}`),
        /only grows/,
      );
    await assert.rejects(changeDirectly(test.database, "update audit_log set actor_name = 'x'"), /only grows/);
  });

  it('is distinguished from a start that was cut off by hand', async () => {
    await unlockAuditLog(test.database);
    await changeDirectly(
      test.database,
      'insert into audit_start select 1, number, hash from audit_log where number = 2',
      'delete from audit_log where number <= 2',
    );
    assert.deepEqual(await verified(), [2, 'was not deleted by svc-api']);
    await changeDirectly(test.database, 'delete from audit_start');
    assert.deepEqual(await verified(), [1, 'is missing']);
  });

  it('is distinguished from one with a changed record', async () => {
    await test.keys.audit.prune('2h');
    await unlockAuditLog(test.database);
    await changeDirectly(test.database, `update audit_start set hash = '${'0'.repeat(64)}'`);
    assert.deepEqual(await verified(), [2, 'was not deleted by svc-api']);
    await changeDirectly(test.database, "update audit_log set after = null where action = 'PRUNE'");
    assert.deepEqual(await verified(), [2, 'was not deleted by svc-api']);
  });

  it('leaves the last entry that it deleted to compare a kept head with', async () => {
    const { last } = (await test.keys.audit.prune('2h'))!;
    const compared = async (head: string) => (await test.keys.audit.check(head)).verification;
    assert.ok('entries' in (await compared(`${last.number}:${last.hash}`)));
    assert.deepEqual(await compared(`${last.number}:${'0'.repeat(64)}`), {
      broken: 2,
      reason: 'is not the one with the given hash',
    });
    assert.deepEqual(await compared(`1:${last.hash}`), {
      unverifiable: 1,
      reason: 'was pruned: compare with a newer head',
    });
  });

  describe('of many entries', () => {
    const MANY = 1200;
    beforeEach(async () => {
      const actor = { kind: 'CLI', id: null, name: 'tester' } as const;
      const entry = { at: test.time.now, actor, action: 'REFUSE', apiKey: null, before: null, after: null } as const;
      await test.store.repository.write((writer) => writer.appendToAuditLog(Array.from({ length: MANY }, () => entry)));
      test.time.now += HOUR;
    });
    const rows = async () => {
      const [row] = await readDirectly(test.database, 'select count(*) as count from audit_log');
      return Number(row!['count']);
    };

    it('is done in pieces: they are no part of the log from the first on, and others change keys meanwhile', async () => {
      const pruning = test.keys.audit.keep(HOUR / 2);
      assert.equal((await pruning.next()).done, false);
      assert.ok((await rows()) > 5);
      assert.deepEqual(
        (await entries()).map(({ action, actor }) => [action, actor.kind, actor.name]),
        [['PRUNE', 'POLICY', 'audit.keep']],
      );
      assert.equal(await verified(), 1);
      await test.keys.create({ name: 'E', roles: ['GUEST'] }, OPERATOR);
      assert.equal(await verified(), 2);
      let step = await pruning.next();
      while (!step.done) step = await pruning.next();
      assert.equal(step.value?.entries, MANY + 4);
      assert.equal(await rows(), 2);
      assert.equal(await verified(), 2);
    });

    it('is finished by the next one where the process was ended', async () => {
      await test.keys.audit.keep(HOUR / 2).next();
      assert.ok((await rows()) > 5);
      const again = await openTestKeys({ database: test.database });
      again.time.now = test.time.now;
      assert.equal(await again.keys.audit.findPrunable('30m'), undefined);
      assert.equal(await again.keys.audit.prune('30m'), undefined);
      await again.store.close();
      assert.equal(await rows(), 1);
      assert.equal(await verified(), 1);
    });

    it('takes no entries that are written while it looks for old ones', async () => {
      const actor = { kind: 'CLI', id: null, name: 'tester' } as const;
      const entry = { actor, action: 'REFUSE', apiKey: null, before: null, after: null } as const;
      for (let newest = MANY + 4; newest < MANY + 24; newest++) {
        const now = test.time.now;
        const [found] = await Promise.all([
          test.keys.audit.findPrunable('30m'),
          test.store.repository.write((writer) => writer.appendToAuditLog([{ ...entry, at: now }])),
        ]);
        assert.equal(found?.last.number, newest);
        test.time.now += HOUR;
      }
    });

    it('is done by two at once, and recorded once', async () => {
      const done = await Promise.all([test.keys.audit.prune('30m'), test.keys.audit.prune('30m')]);
      assert.deepEqual(done.map((pruned) => pruned?.entries).filter(Boolean), [MANY + 4]);
      assert.deepEqual([await rows(), await verified()], [1, 1]);
    });
  });

  it('may run while the log is verified', async () => {
    let pruned = false;
    const racing = await openTestKeys({
      database: test.database,
      repository: withAuditLog((log) => ({
        async head() {
          if (!pruned) await test.keys.audit.prune('2h');
          pruned = true;
          return log.head();
        },
      })),
    });
    const result = (await racing.keys.audit.check()).verification;
    assert.ok(pruned && 'entries' in result && result.entries === 3);
    await racing.store.close();
  });
});
