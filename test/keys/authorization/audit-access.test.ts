import assert from 'node:assert/strict';
import type { AuditEntry } from '../../../src/keys/audit/audit-entry.ts';
import { OPERATOR, type Principal } from '../../../src/keys/authorization/principal.ts';
import { createSecret } from '../../../src/keys/secret/secret.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { insertKeys } from '../../support/insert-keys.ts';
import { authenticate, createPrincipal, openTestKeys, storedKey, type TestKeys } from '../../support/keys.ts';

describeOnEach('the audit log as a key reads it', () => {
  let test: TestKeys;
  let admin: Principal;
  let own: Principal;
  let all: AuditEntry[];

  beforeEach(async () => {
    test = await openTestKeys();
    ({ principal: admin } = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] }));
    const permissions = ['LOGS:READ_ANY', 'API_KEY:READ_OWN', 'API_KEY:CREATE_OWN', 'API_KEY:UPDATE_ANY'];
    ({ principal: own } = await createPrincipal(test.keys, { name: 'Own', permissions }, admin));
    const grants = { permissions: ['LOGS:READ_ANY'] };
    const { apiKey: child } = await test.keys.create({ name: 'Child', ...grants }, own);
    const { apiKey: other } = await test.keys.create({ name: 'Other', ...grants }, OPERATOR);
    await test.keys.update(child.id, { description: 'by the operator' }, OPERATOR);
    await test.keys.update(other.id, { description: 'by Own' }, own);
    await authenticate(test.keys, createSecret((size) => new Uint8Array(size)).text, '192.0.2.1');
    await test.keys.finishActivity();
    await test.keys.adopt(own.apiKey.id, OPERATOR);
    all = await read(OPERATOR);
  });
  afterEach(() => test.store.close());

  const read = async (by: Principal | typeof OPERATOR) => (await test.keys.audit.read({}, by)).toReversed();

  it('is whole for one that may read all keys', async () => {
    assert.deepEqual(await read(admin), all);
    assert.equal(all.length, 8);
  });

  it('with READ_OWN has the entries about or by its own keys, and names no others', async () => {
    const [, ownCreated, childCreated, , childUpdated, otherUpdated, refused, adopted] = all;
    const unnamed = { id: null, name: null };
    assert.deepEqual(
      [ownCreated!.after!['createdBy'], adopted!.before],
      [admin.apiKey.id, { createdBy: admin.apiKey.id }],
    );
    assert.match(refused!.actor.name!, /^svc_/);
    assert.deepEqual(await read(own), [
      { ...ownCreated, actor: { kind: 'KEY', ...unnamed }, after: { ...ownCreated!.after, createdBy: null } },
      childCreated,
      { ...childUpdated, actor: { kind: 'CLI', ...unnamed } },
      { ...otherUpdated, apiKey: null, before: null, after: null },
      refused,
      { ...adopted, actor: { kind: 'CLI', ...unnamed }, before: { createdBy: null } },
    ]);
  });

  it('with READ_OWN names itself as the creator, also where only another one acted', async () => {
    await insertKeys(test.keys, [storedKey('By another', { createdBy: own.apiKey.id })]);
    const [entry] = await test.keys.audit.read({ apiKey: 'By another' }, OPERATOR);
    assert.equal(entry!.after!['createdBy'], own.apiKey.id);
    const unnamed = { kind: 'CLI', id: null, name: null };
    assert.deepEqual(await test.keys.audit.read({ apiKey: 'By another' }, own), [{ ...entry, actor: unnamed }]);
  });

  it('with READ_OWN has the deletion of its own keys, unnamed like all deleted ones', async () => {
    const { apiKey: key } = await test.keys.create({ name: 'Gone', permissions: ['LOGS:READ_ANY'] }, own);
    await test.keys.update(own.apiKey.id, { permissions: [...own.apiKey.permissions, 'API_KEY:DELETE_OWN'] }, OPERATOR);
    await test.keys.delete([key.id], own);
    const deletion = (await read(own)).at(-1)!;
    assert.deepEqual(deletion, { ...(await read(OPERATOR)).at(-1), apiKey: null, before: null, after: null });
    assert.equal(deletion.actor.name, 'Own');
  });

  it('with ME:READ_OWN alone has its own creation, and otherwise entries about no key', async () => {
    const { principal } = await createPrincipal(test.keys, { name: 'Viewer', roles: ['VIEWER'] });
    await test.keys.create({ name: 'Not its own', roles: ['GUEST'] }, OPERATOR);
    const entries = await read(principal);
    assert.deepEqual(entries[0], all[6]);
    assert.deepEqual(
      entries.slice(1).map(({ action, actor, apiKey }) => [action, actor.name, apiKey?.name]),
      [['CREATE', null, 'Viewer']],
    );
  });

  it('without any READ of keys has only what concerns no key', async () => {
    const { principal } = await createPrincipal(test.keys, { name: 'Auditor', permissions: ['LOGS:READ_ANY'] });
    assert.deepEqual(await read(principal), [all[6]]);
  });
});
