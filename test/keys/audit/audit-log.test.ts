import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { chainHash } from '../../../src/keys/audit/chain.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { changeDirectly, readDirectly, unlockAuditLog } from '../../support/direct.ts';
import { authenticate, createPrincipal, openTestKeys, type TestKeys, withAuditLog } from '../../support/keys.ts';
import { failDelivery } from '../../support/delivery.ts';
import { tempFolder } from '../../support/temp.ts';

describeOnEach('the audit log', (dialect) => {
  let test: TestKeys;
  beforeEach(async () => {
    test = await openTestKeys();
  });
  afterEach(() => test.store.close());
  const entries = async () => (await test.keys.audit.read({ first: 500 }, OPERATOR)).toReversed();
  const lines = async () =>
    (await entries()).map(({ actor, action, apiKey: key, before, after }) => [
      actor.name,
      action,
      key?.name ?? null,
      before,
      after,
    ]);

  /** Changes the log behind svc-api's back, without the triggers that prevent it. */
  const tamper = async (...statements: string[]) => {
    await unlockAuditLog(test.database);
    await changeDirectly(test.database, ...statements);
  };

  it('has every change with the actor, and the values before and after', async () => {
    const created = await test.keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
    const { principal } = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] });
    const { id } = created.apiKey;
    test.time.now += 1000;
    await test.keys.update(id, { name: 'CI 2', roles: ['VIEWER'] }, principal);
    await test.keys.setEnabled(id, false, principal);
    await test.keys.setEnabled(id, true, OPERATOR);
    await test.keys.rotate(id, { grace: '1h' }, OPERATOR);
    await test.keys.finishRotation(id, OPERATOR);
    await test.keys.delete([id], principal);
    const [first, , ...rest] = await lines();
    const values = {
      name: 'CI',
      description: null,
      roles: ['GUEST'],
      permissions: [],
      limits: [],
      allowFrom: null,
      prefix: `svc_${created.apiKey.publicId}_…`,
    };
    const more = { createdBy: null, expiresAt: null, disabledAt: null, managed: false, rotation: null };
    assert.deepEqual(first, ['tester', 'CREATE', 'CI', null, { ...values, ...more }]);
    const short = rest.map(([who, what, key, before, after]) => [
      who,
      what,
      key,
      Object.keys(before ?? {}),
      Object.keys(after ?? {}),
    ]);
    assert.deepEqual(short.slice(0, -1), [
      ['Admin', 'UPDATE', 'CI 2', ['name', 'roles'], ['name', 'roles']],
      ['Admin', 'DISABLE', 'CI 2', ['disabledAt'], ['disabledAt']],
      ['tester', 'ENABLE', 'CI 2', ['disabledAt'], ['disabledAt']],
      ['tester', 'ROTATE', 'CI 2', ['prefix', 'rotation'], ['prefix', 'rotation']],
      ['tester', 'ROTATE_FINISH', 'CI 2', ['rotation'], ['rotation']],
    ]);
    assert.deepEqual(short.at(-1), ['Admin', 'DELETE', 'CI 2', Object.keys({ ...values, ...more }), []]);
    assert.equal(rest.at(-1)!.at(-1), null);
    assert.deepEqual((rest[0] as unknown[])[3], { name: 'CI', roles: ['GUEST'] });
    const all = await entries();
    assert.deepEqual(
      all.map(({ number }) => number),
      all.map((_, index) => index + 1),
    );
    const { actor } = all[2]!;
    assert.deepEqual(actor, { kind: 'KEY', id: principal.apiKey.id, name: 'Admin' });
  });

  it('has nothing about failures and about changes without effect', async () => {
    const { apiKey: key } = await test.keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
    await test.keys.update(key.id, { name: 'CI' }, OPERATOR);
    await test.keys.setEnabled(key.id, true, OPERATOR);
    await test.keys.delete(['nobody'], OPERATOR);
    await assert.rejects(test.keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR));
    assert.equal((await entries()).length, 1);
  });

  it('has one entry for each key that is deleted with another', async () => {
    const { principal } = await createPrincipal(test.keys, { name: 'Parent', roles: ['ADMIN'] });
    await test.keys.create({ name: 'Child', roles: ['GUEST'] }, principal);
    const replacement = { name: 'Parent', roles: ['GUEST'], overwrite: true };
    await failDelivery((delivery) => test.keys.create(replacement, OPERATOR, delivery));
    assert.deepEqual(
      (await entries()).map(({ action, apiKey: key }) => `${action} ${key?.name}`),
      [
        'CREATE Parent',
        'CREATE Child',
        'DELETE Parent',
        'DELETE Child',
        'CREATE Parent',
        'DELETE Parent',
        'CREATE Parent',
        'CREATE Child',
      ],
    );
  });

  it('holds no secret and no digest', async () => {
    const { key: secret, apiKey: key } = await test.keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
    const rotated = await test.keys.rotate(key.id, {}, OPERATOR);
    await authenticate(test.keys, `${secret}x`);
    await test.keys.finishActivity();
    const text = JSON.stringify(await entries());
    const [row] = await readDirectly(test.database, 'select digest, previous_digest from api_keys');
    const digests = Object.values(row!) as string[];
    const stored = JSON.stringify(await readDirectly(test.database, 'select * from audit_log'));
    const secrets = [secret.slice(17), rotated.key.slice(17)];
    for (const value of [...secrets, ...digests])
      assert.ok(value.length > 40 && !text.includes(value) && !stored.includes(value));
    if (dialect === 'sqlite') for (const value of secrets) assert.ok(!readFileSync(test.database).includes(value));
  });

  it('is filtered by key, actor, action and time, and read page by page', async () => {
    const { principal } = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] });
    for (const name of ['A', 'B', 'C']) {
      test.time.now += 60_000;
      await test.keys.create({ name, roles: ['GUEST'] }, name === 'B' ? principal : OPERATOR);
    }
    const { id } = (await test.keys.findByName('B', OPERATOR))!;
    await test.keys.delete([id], OPERATOR);
    const found = async (request: object, place = {}) =>
      (await test.keys.audit.read(request, OPERATOR, place)).map(({ number }) => number);
    assert.deepEqual(await found({}), [5, 4, 3, 2, 1]);
    assert.deepEqual(await found({ first: 2 }), [5, 4]);
    assert.deepEqual(await found({ first: 2 }, { before: 4 }), [3, 2]);
    assert.deepEqual(await found({ first: 2 }, { after: 2 }), [3, 4]);
    assert.deepEqual(
      [await found({ apiKey: 'B' }), await found({ apiKey: id }), await found({ apiKey: 'nobody' })],
      [[5, 3], [5, 3], []],
    );
    assert.deepEqual([await found({ actor: 'Admin' }), await found({ actor: principal.apiKey.id })], [[3], [3]]);
    assert.deepEqual(await found({ actor: 'tester', action: 'create' }), [4, 2, 1]);
    assert.deepEqual(await found({ action: ' create ', first: 1 }), [4]);
    assert.deepEqual(await found({ first: 0 }), []);
    assert.deepEqual(await found({ since: '60s' }), [5, 4, 3]);
    assert.deepEqual(await found({ since: '2030-01-01T00:02:00Z', until: '2030-01-01T00:03:00Z' }), [3]);
    for (const wrong of [
      { action: 'x' },
      { since: 'yesterday' },
      { until: '2030-02-30T00:00:00Z' },
      { action: '' },
      { apiKey: '' },
      { actor: ' ' },
      { since: '' },
      { until: '' },
      { first: 501 },
      { first: -1 },
      { first: 1.5 },
      { apiKey: '\0' },
      { actor: '\0' },
      { apiKey: 'x'.repeat(1001) },
    ])
      await assert.rejects(found(wrong), { code: 'INPUT_INVALID' });
  });

  it('has the entries of an action in their order, however many others are between them', async () => {
    const actor = { kind: 'CLI', id: null, name: 'tester' } as const;
    const drafts = Array.from({ length: 3100 }, (_, index) => {
      const action = index % 300 === 0 ? 'DISABLE' : 'ENABLE';
      return { at: index, actor, action, apiKey: null, before: null, after: null } as const;
    });
    await test.store.repository.write((writer) => writer.appendToAuditLog(drafts));
    const disabled = drafts.flatMap(({ action }, index) => (action === 'DISABLE' ? index + 1 : []));
    const found = async (request: object, place = {}) =>
      (await test.keys.audit.read({ first: 3, action: 'DISABLE', ...request }, OPERATOR, place)).map(
        ({ number }) => number,
      );
    for (const number of [1, 2, 900, 901, 999, 1000, 1001, 1999, 2000, 2001, 2101, 3000, 3100, 4000]) {
      const before = disabled.filter((other) => other < number).toReversed();
      assert.deepEqual(await found({}, { before: number }), before.slice(0, 3), `before ${number}`);
      const after = disabled.filter((other) => other > number);
      assert.deepEqual(await found({}, { after: number }), after.slice(0, 3), `after ${number}`);
    }
    assert.deepEqual(await found({ first: 500 }), disabled.toReversed());
    assert.deepEqual(await found({ action: 'ENABLE' }, { before: 2103 }), [2102, 2100, 2099]);
  });

  it('is for keys that may read logs', async () => {
    const may = await createPrincipal(test.keys, {
      name: 'Reader',
      permissions: ['LOGS:READ_ANY', 'API_KEY:READ_ANY'],
    });
    const mayNot = await createPrincipal(test.keys, { name: 'Other', permissions: ['LOGS:READ_OWN'] });
    assert.equal((await test.keys.audit.read({}, may.principal)).length, 2);
    await assert.rejects(test.keys.audit.read({}, mayNot.principal), { code: 'FORBIDDEN' });
  });

  it('only grows: the store itself refuses to change or remove an entry', async () => {
    await test.keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
    for (const change of ["update audit_log set actor_name = 'x'", 'delete from audit_log'])
      await assert.rejects(changeDirectly(test.database, change), /only grows/);
    if (dialect === 'postgres') await assert.rejects(changeDirectly(test.database, 'truncate audit_log'), /only grows/);
  });

  describe('is verified', () => {
    beforeEach(async () => {
      for (const name of ['A', 'B', 'C', 'D']) await test.keys.create({ name, roles: ['GUEST'] }, OPERATOR);
    });

    it('as whole, even when it is empty', async () => {
      const all = await entries();
      assert.deepEqual((await test.keys.audit.check()).verification, { entries: 4, number: 4, hash: all.at(-1)!.hash });
      const other = await openTestKeys();
      assert.deepEqual((await other.keys.audit.check()).verification, { entries: 0, number: 0, hash: '0'.repeat(64) });
      await other.store.close();
    });

    it('when an entry is added after the last one was looked at', async () => {
      let isAdded = false;
      const adding = await openTestKeys({
        database: test.database,
        repository: withAuditLog((log) => ({
          async find(query) {
            if (query.limit === 1 && query.after !== undefined) {
              isAdded = true;
              await test.keys.create({ name: 'E', roles: ['GUEST'] }, OPERATOR);
            }
            return log.find(query);
          },
        })),
      });
      const result = (await adding.keys.audit.check()).verification;
      assert.deepEqual([isAdded, 'entries' in result && result.entries], [true, 4]);
      await adding.store.close();
    });

    it('as broken when it is cut off', async () => {
      const reasonOf = async () => ((await test.keys.audit.check()).verification as { reason?: string }).reason;
      await tamper('delete from audit_log where number = 2');
      assert.equal(await reasonOf(), 'is missing');
      await tamper('delete from audit_log where number > 2');
      assert.equal(await reasonOf(), 'is missing');
    });

    it('against a head that was kept, with which it still agrees', async () => {
      for (let count = 5; count <= 10; count += 1)
        await test.keys.create({ name: `Key ${count}`, roles: ['GUEST'] }, OPERATOR);
      const { hash } = (await entries()).at(-1)!;
      for (const head of [`10:${hash}`, ` 10:${hash}\n`])
        assert.deepEqual((await test.keys.audit.check(head)).verification, { entries: 10, number: 10, hash });
      assert.deepEqual((await test.keys.audit.check(`9:${hash}`)).verification, {
        broken: 9,
        reason: 'is not the one with the given hash',
      });
      for (const wrong of ['', hash, `10${hash}`, `x10:${hash}`, `10:${hash}0`, `10:${hash.slice(1)}`, `-1:${hash}`])
        await assert.rejects(test.keys.audit.check(wrong), { code: 'INPUT_INVALID', message: /is not the head of/ });
    });

    it('as whole with a key, too, as long as it is empty', async () => {
      const path = join(tempFolder(), 'audit.key');
      writeFileSync(path, randomBytes(32), { mode: 0o600 });
      const keyed = await openTestKeys({ env: { SVC_API_AUDIT_KEY: path } });
      assert.deepEqual((await keyed.keys.audit.check()).verification, { entries: 0, number: 0, hash: '0'.repeat(64) });
      await keyed.store.close();
    });

    it('while others append to it', async () => {
      const results = await Promise.all([
        ...Array.from({ length: 10 }, (_, index) =>
          test.keys.create({ name: `More ${index}`, roles: ['GUEST'] }, OPERATOR),
        ),
        ...Array.from({ length: 10 }, () => test.keys.audit.check()),
      ]);
      for (const result of results) assert.ok(!('verification' in result && 'broken' in result.verification));
    });

    for (const [what, broken, ...statements] of [
      ['an entry was changed', 2, "update audit_log set actor_name = 'somebody' where number = 2"],
      ['a value was changed', 3, "update audit_log set after = replace(after, 'GUEST', 'ADMIN') where number = 3"],
      ['a time was changed', 1, 'update audit_log set at = at + 1 where number = 1'],
      ['an entry was taken out', 2, 'delete from audit_log where number = 2'],
      ['the first was taken out', 1, 'delete from audit_log where number = 1'],
      ['the last were taken out', 3, 'delete from audit_log where number > 2'],
      ['all were taken out', 1, 'delete from audit_log'],
      [
        'two changed places',
        2,
        'update audit_log set number = 9 where number = 2',
        'update audit_log set number = 2 where number = 3',
        'update audit_log set number = 3 where number = 9',
      ],
      ['a value is no JSON', 4, "update audit_log set after = '{' where number = 4"],
      [
        'the end was cut off with the head',
        4,
        'delete from audit_log where number = 4',
        'update audit_head set number = 4',
      ],
      ['the head was changed', 4, "update audit_head set hash = 'x'"],
      ['the head was taken out', 1, 'delete from audit_head'],
      [
        'one was added by hand',
        5,
        'insert into audit_log select 5, at, actor_kind, actor_id, actor_name, action, key_id, key_name, before, after, address, hash from audit_log where number = 4',
      ],
    ] as const) {
      it(`as broken when ${what}: the first broken entry is named`, async () => {
        await tamper(...statements);
        const result = (await test.keys.audit.check()).verification;
        assert.equal('broken' in result && result.broken, broken);
      });
    }

    it('as broken after an entry that was changed together with its hash', async () => {
      const [first, second] = await entries();
      const hash = chainHash({ ...second!, actor: { ...second!.actor, name: 'somebody' } }, first!.hash);
      await tamper(`update audit_log set actor_name = 'somebody', hash = '${hash}' where number = 2`);
      const result = (await test.keys.audit.check()).verification;
      assert.equal('broken' in result && result.broken, 3);
    });
  });
});
