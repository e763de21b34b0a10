import assert from 'node:assert/strict';
import { type OpenKeys, openKeys, OPERATOR } from '../../src/index.ts';

describe('the methods of an open key store', () => {
  let keys: OpenKeys;
  const by = { actor: OPERATOR } as const;
  beforeEach(async () => void (keys = await openKeys({ database: ':memory:' })));
  afterEach(() => keys.close());

  it('get a key by its id or its name', async () => {
    const { apiKey } = await keys.create({ name: 'CI deploy', roles: ['GUEST'] }, by);
    const { apiKey: other } = await keys.create({ name: apiKey.id.replaceAll('-', ' '), roles: ['GUEST'] }, by);
    assert.deepEqual(await keys.get('CI deploy', by), apiKey);
    assert.deepEqual(await keys.get(apiKey.id, by), apiKey);
    assert.deepEqual(await keys.get(other.name, by), other);
    for (const missing of ['ci deploy', crypto.randomUUID(), '', other.id.slice(1)])
      assert.equal(await keys.get(missing, by), undefined);
  });

  it('get only what the actor may read', async () => {
    const { key: secret } = await keys.create({ name: 'Reader', permissions: ['API_KEY:READ_OWN'] }, by);
    const { apiKey: other } = await keys.create({ name: 'Other', roles: ['GUEST'] }, by);
    const checked = await keys.verify(secret);
    assert.ok(checked.ok);
    const asReader = { actor: checked.principal };
    assert.equal((await keys.get('Reader', asReader))?.id, checked.principal.apiKey.id);
    assert.deepEqual([await keys.get('Other', asReader), await keys.get(other.id, asReader)], [undefined, undefined]);
  });

  it('verify a secret as a request with it', async () => {
    const { key: secret, apiKey } = await keys.create(
      { name: 'Two', roles: ['GUEST'], limits: ['2/h'], allowFrom: ['192.0.2.0/24'] },
      by,
    );
    const address = '192.0.2.7';
    const statusOf = async (...given: Parameters<OpenKeys['verify']>) => {
      const checked = await keys.verify(...given);
      return checked.ok || checked.status;
    };
    assert.equal(await statusOf(secret), 403);
    assert.equal(await statusOf(secret, { address, permission: 'DOCKER:READ_ANY' }), 403);
    assert.equal(await statusOf(secret, { address, permission: 'ME:READ_OWN' }), true);
    assert.equal(await statusOf(secret, { address }), 429);
    for (const missing of ['nonsense', '', null, undefined]) assert.equal(await statusOf(missing), 401);
    await assert.rejects(keys.verify(secret, { permision: 'ME:READ_OWN' } as never), { code: 'OPTION_INVALID' });
    await keys.delete(apiKey.id, by);
    assert.equal(await statusOf(secret, { address }), 401);
  });

  it('disable and enable a key, and delete one or several', async () => {
    const [one, two, three] = await Promise.all(
      ['One', 'Two', 'Three'].map((name) => keys.create({ name, roles: ['GUEST'] }, by)),
    );
    const isAccepted = async () => (await keys.verify(one!.key)).ok;
    await keys.disable(one!.apiKey.id, by);
    assert.equal(await isAccepted(), false);
    await keys.enable(one!.apiKey.id, by);
    assert.equal(await isAccepted(), true);
    assert.deepEqual(await keys.delete(one!.apiKey.id, by), [one!.apiKey]);
    assert.equal((await keys.delete([two!.apiKey.id, three!.apiKey.id, 'unknown'], by)).length, 2);
    assert.deepEqual((await keys.list({}, by)).keys, []);
  });
});
