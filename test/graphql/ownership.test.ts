import assert from 'node:assert/strict';
import { OPERATOR, type Principal } from '../../src/keys/principal.ts';
import { createPrincipal, openTestKeys, type TestKeys } from '../support/keys.ts';
import { query, startServer, type TestServer } from '../support/server.ts';

describe('keys over GraphQL, by who owns them', () => {
  let open: TestKeys;
  let server: TestServer;
  type Made = { secret: string; principal: Principal };
  let owner: Made;
  let child: Made;
  let stranger: Made;
  const OWN = ['CREATE', 'READ', 'UPDATE', 'DELETE'].map((verb) => `API_KEY:${verb}_OWN`);
  beforeEach(async () => {
    open = await openTestKeys();
    server = await startServer(open.keys);
    owner = await createPrincipal(open.keys, { name: 'Owner', permissions: OWN });
    open.time.now += 1;
    child = await createPrincipal(open.keys, { name: 'Child', permissions: OWN }, owner.principal);
    open.time.now += 1;
    stranger = await createPrincipal(open.keys, { name: 'Stranger', roles: ['ADMIN'] });
  });
  afterEach(async () => {
    await server.stop();
    await open.store.close();
  });
  const ask = async (by: Made, document: string, variables?: Record<string, unknown>) =>
    (await query(server.url, by.secret, document, variables)).body;
  const exists = async ({ principal }: Made) => (await open.keys.findById(principal.key.id, OPERATOR)) !== undefined;

  it('lists and finds its own ones only', async () => {
    const document = `query ($id: ID) { apiKeys { edges { node { name createdBy } } } byId: apiKey(id: $id) { id } byName: apiKey(name: "Stranger") { id } child: apiKey(name: "Child") { name } }`;
    assert.deepEqual((await ask(owner, document, { id: stranger.principal.key.id })).data, {
      apiKeys: { edges: [{ node: { name: 'Owner', createdBy: null } }, { node: { name: 'Child', createdBy: owner.principal.key.id } }] },
      byId: null,
      byName: null,
      child: { name: 'Child' },
    });
    assert.equal(((await ask(stranger, document)).data!['apiKeys'] as { edges: object[] }).edges.length, 3);
  });

  it('changes and deletes its own ones only, and names what it lacks for others', async () => {
    const update = 'mutation ($id: ID!) { updateApiKey(input: { id: $id, description: "changed" }) { description } }';
    const remove = 'mutation ($ids: [ID!]!) { deleteApiKeys(ids: $ids) { deleted keys { id name } } }';
    assert.deepEqual((await ask(owner, update, { id: child.principal.key.id })).data, { updateApiKey: { description: 'changed' } });
    const refusedUpdate = await ask(owner, update, { id: stranger.principal.key.id });
    assert.deepEqual(refusedUpdate.errors![0]!.extensions, { code: 'FORBIDDEN', missing: ['API_KEY:UPDATE_ANY'] });
    const refusedDelete = await ask(owner, remove, { ids: [child.principal.key.id, stranger.principal.key.id] });
    assert.deepEqual(refusedDelete.errors![0]!.extensions, { code: 'FORBIDDEN', missing: ['API_KEY:DELETE_ANY'] });
    assert.deepEqual([await exists(child), await exists(stranger)], [true, true]);
    const { id, name } = child.principal.key;
    assert.deepEqual((await ask(owner, remove, { ids: [id] })).data, { deleteApiKeys: { deleted: 1, keys: [{ id, name }] } });
  });

  it('loses with a key all that it created, counted and listed', async () => {
    const grandchild = await createPrincipal(open.keys, { name: 'Grandchild', permissions: ['API_KEY:READ_OWN'] }, child.principal);
    const { data } = await ask(stranger, 'mutation ($ids: [ID!]!) { deleteApiKeys(ids: $ids) { deleted keys { name } } }', {
      ids: [owner.principal.key.id, 'unknown'],
    });
    assert.deepEqual(data, { deleteApiKeys: { deleted: 3, keys: [{ name: 'Owner' }, { name: 'Child' }, { name: 'Grandchild' }] } });
    assert.deepEqual(await Promise.all([owner, child, grandchild].map(exists)), [false, false, false]);
    assert.equal((await query(server.url, grandchild.secret, '{ online }')).status, 401);
  });

  it('replaces a key only with the right to delete it', async () => {
    const create = (name: string) =>
      `mutation { createApiKey(input: { name: "${name}", overwrite: true, permissions: [{ resource: API_KEY, actions: [READ_OWN] }] }) { key apiKey { id createdBy } } }`;
    const refused = await ask(owner, create('Stranger'));
    assert.deepEqual(refused.errors![0]!.extensions, { code: 'FORBIDDEN', missing: ['API_KEY:DELETE_ANY'] });
    assert.equal(await exists(stranger), true);
    assert.equal((await ask(owner, create('Child'))).errors, undefined);
    assert.equal(await exists(child), false);
  });

  it('lets a key replace itself: the new one takes its place', async () => {
    const { data } = await ask(
      owner,
      'mutation { createApiKey(input: { name: "Owner", overwrite: true, permissions: [{ resource: API_KEY, actions: [READ_OWN] }] }) { key apiKey { createdBy } } }',
    );
    const { key, apiKey } = data!['createApiKey'] as { key: string; apiKey: { createdBy: null } };
    assert.equal(apiKey.createdBy, null);
    assert.equal((await query(server.url, owner.secret, '{ online }')).status, 401);
    assert.equal((await query(server.url, key, '{ apiKeys { edges { cursor } } }')).status, 200);
    assert.equal(await exists(child), false);
  });

  it('never hands out more than it has', async () => {
    const mutate = (input: string) => ask(owner, `mutation { createApiKey(input: { name: "Strong", ${input} }) { key } }`);
    for (const input of ['roles: [ADMIN]', 'roles: [GUEST]', 'permissions: [{ resource: API_KEY, actions: [READ_ANY] }]']) {
      const { data, errors } = await mutate(input);
      assert.deepEqual(data, { createApiKey: null });
      assert.equal(errors![0]!.extensions['code'], 'FORBIDDEN');
    }
    const raise = await ask(owner, 'mutation ($id: ID!) { updateApiKey(input: { id: $id, roles: [ADMIN] }) { id } }', {
      id: owner.principal.key.id,
    });
    assert.equal(raise.errors![0]!.extensions['code'], 'FORBIDDEN');
    assert.equal(await open.store.repository.count({}), 3);
    assert.deepEqual((await open.keys.findById(owner.principal.key.id, OPERATOR))!.roles, []);
  });
});
