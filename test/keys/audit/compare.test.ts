import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { checkAuditLog } from '../../../src/keys/audit/index.ts';
import { API_KEY_COLUMNS } from '../../../src/store/tables.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { fieldsText, NO_VALUES } from '../../../src/keys/key/fields.ts';
import { UNIT_MS } from '../../../src/keys/basics/index.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { changeDirectly, unlockAuditLog } from '../../support/direct.ts';
import { insertKeys, numberedKeys } from '../../support/insert-keys.ts';
import { authenticate, createPrincipal, idOf, openTestKeys, type TestKeys, withAuditLog } from '../../support/keys.ts';

describeOnEach('the keys, compared with the audit log', (dialect) => {
  let test: TestKeys;
  beforeEach(async () => {
    test = await openTestKeys();
  });
  afterEach(() => test.store.close());
  const create = (name: string) => test.keys.create({ name, roles: ['GUEST'] }, OPERATOR);
  /** Inserts keys with random ids; those of `numberedKeys` share a prefix. */
  const insertWithIds = async (count: number) => {
    const keys = numberedKeys(count).map((key) => ({ ...key, id: randomUUID() }));
    await insertKeys(test.keys, keys);
    return keys;
  };
  const found = async () => {
    const { compared, older, differences } = (await test.keys.audit.check()).comparison!;
    return [compared, older, differences.map(({ name, reason }) => `${name} ${reason}`)];
  };

  it('are as it says after every kind of change', async () => {
    const { principal } = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] });
    const { apiKey: key } = await create('CI');
    await test.keys.update(key.id, { name: 'CI 2', description: 'x', roles: ['VIEWER'], expiresIn: '9d' }, principal);
    await test.keys.setEnabled(key.id, false, principal);
    await test.keys.setEnabled(key.id, true, OPERATOR);
    await test.keys.rotate(key.id, { activate: 'on-first-use' }, OPERATOR);
    await test.keys.finishRotation(key.id, OPERATOR);
    const { key: secret } = await test.keys.rotate(key.id, { activate: 'on-first-use' }, OPERATOR);
    await authenticate(test.keys, secret);
    await test.keys.finishActivity();
    const child = await test.keys.create({ name: 'Child', roles: ['GUEST'] }, principal);
    await test.keys.adopt(child.apiKey.id, OPERATOR);
    await test.keys.delete([child.apiKey.id], OPERATOR);
    assert.deepEqual(await found(), [2, 0, []]);
  });

  it('are as it says in a store of many pages', async () => {
    await insertKeys(test.keys, numberedKeys(1100));
    assert.deepEqual(await found(), [1100, 0, []]);
  });

  it('are as it says where the log has thousands of their changes', async () => {
    const { apiKey: key } = await create('CI');
    const [entry] = await test.keys.audit.read({}, OPERATOR);
    const change = { ...entry!, action: 'UPDATE' as const, before: null, after: { description: 'x' } };
    await test.store.repository.write(async (writer) => {
      await writer.appendToAuditLog(Array.from({ length: 2000 }, () => change));
      await writer.appendToAuditLog([{ ...change, after: { description: null } }]);
    });
    assert.deepEqual(await found(), [1, 0, []]);
    await test.keys.update(key.id, { description: 'y' }, OPERATOR);
    assert.deepEqual(await found(), [1, 0, []]);
  });

  it("are as it says if a creation names no key, as a holder of the log's key may write", async () => {
    await create('CI');
    const [entry] = await test.keys.audit.read({}, OPERATOR);
    const nameless = { ...entry!, apiKey: null };
    await test.store.repository.write((writer) => writer.appendToAuditLog([nameless]));
    assert.deepEqual(await found(), [1, 0, []]);
  });

  it('are named up to the hundredth that is not', async () => {
    await insertKeys(test.keys, numberedKeys(102));
    await changeDirectly(test.database, `update api_keys set fields = '{"1":"x"}'`);
    const { compared, differences } = (await test.keys.audit.check()).comparison!;
    assert.deepEqual([compared, differences.length], [102, 100]);
  });

  it('are not, where a field was changed by hand', async () => {
    await create('CI');
    await changeDirectly(test.database, `update api_keys set roles = '["ADMIN"]', expires_at = 1 where name = 'CI'`);
    assert.deepEqual(await found(), [1, 0, ['CI differs in roles, expiresAt']]);
  });

  it('are not, where a field that an entry leaves out was changed by hand, or one that it has was removed', async () => {
    await create('CI');
    const { apiKey: owned } = await test.keys.create(
      { name: 'Owned', roles: ['GUEST'], owner: 'Ada', tags: ['env=prod'], limits: ['9/m'], allowFrom: ['::1'] },
      OPERATOR,
    );
    await changeDirectly(
      test.database,
      `update api_keys set fields = '${fieldsText({
        ...NO_VALUES,
        owner: 'Eve',
        tags: ['env=prod'],
        limits: ['9/m'],
        allowFrom: ['::1'],
        audience: 'https://example.org',
      })}' where name = 'CI'`,
    );
    await changeDirectly(test.database, `update api_keys set fields = null where id = '${owned.id}'`);
    const { differences } = (await test.keys.audit.check()).comparison!;
    const fieldsOf = (key: string) => {
      const { reason } = differences.find(({ name }) => name === key)!;
      return reason.replace('differs in ', '').split(', ').toSorted();
    };
    assert.deepEqual(fieldsOf('CI'), ['allowFrom', 'audience', 'limits', 'owner', 'tags']);
    assert.deepEqual(fieldsOf('Owned'), ['allowFrom', 'limits', 'owner', 'tags']);
  });

  it('are as it says after a field was set and removed', async () => {
    const { apiKey: key } = await create('CI');
    await test.keys.update(key.id, { owner: 'Ada', tags: ['env=prod'] }, OPERATOR);
    await test.keys.update(key.id, { owner: null, tags: [] }, OPERATOR);
    assert.deepEqual(await found(), [1, 0, []]);
  });

  it('are not, where a change was undone by hand', async () => {
    const { apiKey: key } = await create('CI');
    await test.keys.update(key.id, { roles: ['VIEWER'] }, OPERATOR);
    await changeDirectly(test.database, `update api_keys set roles = '["GUEST"]'`);
    assert.deepEqual(await found(), [1, 0, ['CI differs in roles']]);
  });

  it('are looked up in the log of a file if they were changed, and otherwise compared as it is verified', async () => {
    const { repository } = test.store;
    const keys = await insertWithIds(300);
    const changed = [keys[7]!.id, keys[280]!.id];
    for (const isEnabled of [false, true])
      for (const id of changed) await test.keys.setEnabled(id, isEnabled, OPERATOR);
    const lookedUp = new Set<string>();
    const findChanges: typeof repository.auditLog.findChanges = (ids, page) => {
      for (const id of ids) lookedUp.add(id);
      return repository.auditLog.findChanges(ids, page);
    };
    const log = { ...repository.auditLog, findChanges };
    assert.deepEqual((await checkAuditLog(log, repository)).comparison, { compared: 300, older: 0, differences: [] });
    if (dialect === 'sqlite') assert.deepEqual(lookedUp, new Set(changed));
  });

  it('are not, where a key was added by hand', async () => {
    await create('CI');
    await changeDirectly(
      test.database,
      `insert into api_keys (id, name, roles, permissions, public_id, digest, created_at)
       select '${idOf('x')}', 'Forged', '["ADMIN"]', '[]', 'y', 'z', created_at from api_keys`,
    );
    assert.deepEqual(await found(), [1, 0, ['Forged exists, although it was never created']]);
  });

  it('are not, where a deleted key was put back, or one was taken out, by hand', async () => {
    const { apiKey: key } = await create('Deleted');
    await create('Taken');
    const columns = API_KEY_COLUMNS.join();
    await changeDirectly(test.database, `create table kept as select ${columns} from api_keys`);
    await test.keys.delete([key.id], OPERATOR);
    await changeDirectly(
      test.database,
      `insert into api_keys (${columns}) select ${columns} from kept where name = 'Deleted'`,
      "delete from api_keys where name = 'Taken'",
      'drop table kept',
    );
    assert.deepEqual(await found(), [
      1,
      0,
      ['Deleted exists, although it was deleted', 'Taken is missing, although it was not deleted'],
    ]);
  });

  it('that are older than the log are compared in the fields changed since', async () => {
    const [older, pruned] = [await create('Older'), await create('Pruned')];
    test.time.now += 2000;
    await test.keys.update(older.apiKey.id, { roles: ['VIEWER'] }, OPERATOR);
    await test.keys.audit.prune('1s');
    assert.deepEqual(await found(), [0, 2, []], 'their creation was pruned');
    await changeDirectly(test.database, `update api_keys set fields = '{"1":"x"}'`);
    assert.deepEqual(await found(), [0, 2, []]);
    await changeDirectly(test.database, `update api_keys set roles = '["ADMIN"]'`);
    assert.deepEqual(await found(), [0, 2, ['Older differs in roles']]);
    await test.keys.delete([pruned.apiKey.id], OPERATOR);
    assert.deepEqual(await found(), [0, 1, ['Older differs in roles']]);
  });

  it('of a store that had no log at first are all older', async () => {
    await create('CI');
    await unlockAuditLog(test.database);
    await changeDirectly(test.database, 'delete from audit_log', 'delete from audit_head');
    assert.deepEqual(await found(), [0, 1, []]);
  });

  // PostgreSQL compares keys in no particular order.
  const itInFiles = dialect === 'sqlite' ? it : () => {};
  itInFiles('are not, where a change was undone by hand while others were compared', async () => {
    const keys = await insertWithIds(300);
    let isChanged = false;
    const racing = await openTestKeys({
      database: test.database,
      repository: withAuditLog((log) => ({
        async findChanged(...asked) {
          const found = await log.findChanged(...asked);
          if (isChanged) return found;
          isChanged = true;
          await test.keys.setEnabled(keys[280]!.id, false, OPERATOR);
          await changeDirectly(test.database, 'update api_keys set disabled_at = null');
          return found;
        },
      })),
    });
    const { comparison } = await racing.keys.audit.check();
    const differing = comparison!.differences.map(({ name, reason }) => `${name} ${reason}`);
    assert.deepEqual(differing, ['Key 280 differs in disabledAt']);
    await racing.store.close();
  });

  it('are as it says where its oldest entries are pruned while it is verified', async () => {
    for (const name of ['A', 'B', 'C', 'D']) {
      await create(name);
      test.time.now += UNIT_MS.h;
    }
    let isPruned = false;
    const racing = await openTestKeys({
      database: test.database,
      repository: withAuditLog((log) => ({
        async head() {
          if (!isPruned) {
            isPruned = true;
            await test.keys.audit.prune('2h');
          }
          return log.head();
        },
      })),
    });
    const { verification, comparison } = await racing.keys.audit.check();
    assert.deepEqual([isPruned, 'entries' in verification && verification.entries], [true, 3]);
    assert.deepEqual(comparison, { compared: 2, older: 2, differences: [] });
    await racing.store.close();
  });

  it('are compared though they change all the time', async () => {
    const { apiKey: key } = await create('CI');
    await test.keys.update(key.id, { description: 'changed' }, OPERATOR);
    let changes = 0;
    const racing = await openTestKeys({
      database: test.database,
      repository: withAuditLog((log) => ({
        async findChanges(...asked) {
          changes += 1;
          await test.keys.update(key.id, { description: `${changes}` }, OPERATOR);
          return log.findChanges(...asked);
        },
      })),
    });
    assert.deepEqual((await racing.keys.audit.check()).comparison, { compared: 1, older: 0, differences: [] });
    assert.ok(changes >= 2);
    await racing.store.close();
  });
});
