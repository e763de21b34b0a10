import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import type { NewKey } from '../../../src/keys/key/key-change.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { createPrincipal } from '../../support/keys.ts';
import { query, startTestService, type TestService } from '../../support/server.ts';

const CONTAIN = `mutation ($input: ContainKeyInput!) {
  containKey(input: $input) {
    keyId name exists issued { name keyId what at }
    changes { action name keyId changes { field before after } } requests { requestId clientName keyName }
  }
}`;

describeOnEach('containing a key over GraphQL', () => {
  let test: TestService;
  let ids: Record<'Ops' | 'CI' | 'Guard', string>;
  let secrets: Record<'Ops' | 'CI' | 'Guard' | 'Asleep', string>;
  beforeEach(async () => {
    test = await startTestService();
    const [ops, ci, guard] = [
      await create({ name: 'Ops', roles: ['ADMIN'] }),
      await create({ name: 'CI', roles: ['VIEWER'] }),
      await create({ name: 'Guard', roles: ['ADMIN'] }),
    ];
    ids = { Ops: ops.id, CI: ci.id, Guard: guard.id };
    const asleep = await ask(ops.secret, ROTATE, { id: ci.id });
    const { key } = asleep.data!['rotateApiKey'] as { key: string };
    secrets = { Ops: ops.secret, CI: ci.secret, Guard: guard.secret, Asleep: key };
  });
  afterEach(() => test.stop());
  const ROTATE = 'mutation ($id: ID!) { rotateApiKey(input: { id: $id, activate: ON_FIRST_USE }) { key } }';
  const create = async (input: NewKey) => {
    test.time.now += 1000;
    const { secret, principal } = await createPrincipal(test.keys, input);
    return { secret, id: principal.apiKey.id };
  };
  const ask = async (secret: string, document: string, variables?: Record<string, unknown>) =>
    (await query(test.url, secret, document, variables)).body;
  const contain = (input: object, secret = secrets.Guard) => ask(secret, CONTAIN, { input });
  const isOver = async (secret: string) => (await query(test.url, secret, '{ online }')).status === 401;
  const ISSUED = () => [{ name: 'CI', keyId: ids.CI, what: 'SECRET', at: '2030-01-01T00:00:03.000Z' }];

  it('is reported by keys that are shown, disabled, rotated and deleted', async () => {
    const issued = 'issued { name keyId what at }';
    const { id } = { id: ids.Ops };
    const shown = await ask(secrets.Guard, `query ($id: ID!) { apiKey(id: $id) { ${issued} } }`, { id });
    assert.deepEqual(shown.data, { apiKey: { issued: ISSUED() } });
    const off = `mutation ($id: ID!) { setApiKeyEnabled(id: $id, enabled: false) { ${issued} } }`;
    assert.deepEqual((await ask(secrets.Guard, off, { id })).data, { setApiKeyEnabled: { issued: ISSUED() } });
    const rotate = `mutation ($id: ID!) { rotateApiKey(input: { id: $id, disableCreated: true }) { ${issued} } }`;
    assert.deepEqual((await ask(secrets.Guard, rotate, { id })).data, { rotateApiKey: { issued: ISSUED() } });
    const gone = `mutation ($ids: [ID!]!) { deleteApiKeys(ids: $ids) { deleted ${issued} } }`;
    assert.deepEqual((await ask(secrets.Guard, gone, { ids: [id] })).data, {
      deleteApiKeys: { deleted: 1, issued: ISSUED() },
    });
  });

  it('leaves out keys that the requesting key may not read', async () => {
    const own = await create({ name: 'Own', permissions: ['API_KEY:READ_OWN', 'API_KEY:DELETE_ANY'] });
    const gone = 'mutation ($ids: [ID!]!) { deleteApiKeys(ids: $ids) { issued { name } } }';
    assert.deepEqual((await ask(own.secret, gone, { ids: [ids.Ops] })).data, { deleteApiKeys: { issued: [] } });
  });

  it('previews the effect, does it once, and reports the same', async () => {
    const plan = await contain({ name: 'Ops', dryRun: true });
    assert.equal(await isOver(secrets.Ops), false);
    const done = await contain({ id: ids.Ops });
    assert.deepEqual(done.data, plan.data);
    const { keyId, exists, issued, changes } = done.data!['containKey'] as {
      keyId: string;
      exists: boolean;
      issued: object[];
      changes: { name: string; changes: { field: string; before: string; after: string }[] }[];
    };
    assert.deepEqual([keyId, exists, issued], [ids.Ops, true, ISSUED()]);
    assert.deepEqual(changes[0]!.changes, [{ field: 'enabled', before: 'true', after: 'false' }]);
    assert.deepEqual([changes[1]!.name, changes[1]!.changes.length], ['CI', 2]);
    assert.deepEqual([await isOver(secrets.Ops), await isOver(secrets.CI)], [true, false]);
    assert.equal(await isOver(secrets.Asleep), true);
    const again = (await contain({ id: ids.Ops })).data!['containKey'] as { changes: object[] };
    assert.deepEqual(again.changes, []);
  });

  it('works for a key that was deleted, by its name and id', async () => {
    await test.keys.delete([ids.Ops], OPERATOR);
    for (const input of [{ name: 'Ops', dryRun: true }, { id: ids.Ops }]) {
      const { data } = await contain(input);
      assert.equal((data!['containKey'] as { exists: boolean }).exists, false);
    }
    assert.equal(await isOver(secrets.Asleep), true);
  });

  it('undoes only changes since a given time', async () => {
    await contain({ id: ids.Ops, since: '2030-01-01T00:00:03.001Z' });
    assert.deepEqual([await isOver(secrets.Ops), await isOver(secrets.Asleep)], [true, false]);
  });

  it('is for keys that may update and delete it, and the others', async () => {
    const cases = [
      { permissions: ['API_KEY:UPDATE_ANY', 'API_KEY:READ_ANY'], code: 'FORBIDDEN' },
      { permissions: ['API_KEY:UPDATE_OWN', 'API_KEY:DELETE_ANY', 'API_KEY:READ_ANY'], code: 'FORBIDDEN' },
      { permissions: ['API_KEY:READ_ANY'], code: 'FORBIDDEN' },
      { permissions: ['API_KEY:UPDATE_ANY', 'API_KEY:DELETE_ANY'], code: undefined },
    ] as const;
    for (const [index, { permissions, code }] of cases.entries()) {
      const { secret } = await create({ name: `Caller ${index}`, permissions });
      const { errors } = await contain({ id: ids.Ops }, secret);
      assert.equal(errors?.[0]?.extensions['code'], code, permissions.join());
      assert.equal(await isOver(secrets.Asleep), code === undefined);
    }
  });

  it('takes either an id or a name', async () => {
    for (const input of [{}, { id: ids.Ops, name: 'Ops' }])
      assert.equal((await contain(input)).errors?.[0]?.extensions['code'], 'INPUT_INVALID');
    for (const input of [{ id: 'x' }, { name: 'Nobody' }])
      assert.equal((await contain(input)).errors?.[0]?.extensions['code'], 'NOT_FOUND');
  });
});
