import assert from 'node:assert/strict';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { describeOnEach } from '../support/dialects.ts';
import { createPrincipal } from '../support/keys.ts';
import { query, startTestService, type TestService } from '../support/server.ts';

const GUEST = ['ME:READ_OWN', 'ONLINE:READ_ANY', 'WELCOME:READ_ANY'];

describeOnEach('what commands ask of a server', () => {
  let test: TestService;
  let root: { secret: string; id: string };
  beforeEach(async () => {
    test = await startTestService();
    root = await caller('Root', { roles: ['ADMIN'] });
  });
  afterEach(() => test.stop());

  async function caller(name: string, grants: object): Promise<{ secret: string; id: string }> {
    const { secret, principal } = await createPrincipal(test.keys, { name, ...grants });
    return { secret, id: principal.apiKey.id };
  }
  const ask = async (document: string, variables?: Record<string, unknown>, secret = root.secret) => {
    const { body } = await query(test.url, secret, document, variables);
    return body.errors ? body.errors.map(({ extensions }) => extensions['code']) : body.data!;
  };

  it('a preview of a new key, which is not made, by the rules of a creation', async () => {
    const preview = `query ($input: CreateApiKeyInput!) { previewApiKey(input: $input) {
      name description grants limits allowFrom expiresAt effectivePermissions { resource actions }
      replaced { id name }
    } }`;
    const input = { name: ' A b', roles: ['GUEST'], limits: ['5/m'], expiresIn: '1d' };
    assert.deepEqual(await ask(preview, { input }), {
      previewApiKey: {
        name: 'A b',
        description: null,
        grants: ['GUEST'],
        limits: ['5/m'],
        allowFrom: null,
        expiresAt: new Date(test.time.now + 86_400_000).toISOString(),
        effectivePermissions: [
          { resource: 'ME', actions: ['READ_OWN'] },
          { resource: 'ONLINE', actions: ['READ_ANY', 'READ_OWN'] },
          { resource: 'WELCOME', actions: ['READ_ANY', 'READ_OWN'] },
        ],
        replaced: [],
      },
    });
    const maker = await caller('Maker', { permissions: ['API_KEY:CREATE_OWN'] });
    assert.deepEqual(await ask(preview, { input }, maker.secret), ['FORBIDDEN']);
    assert.deepEqual(await ask(preview, { input: { ...input, name: 'Root' } }), ['NAME_TAKEN']);
    assert.deepEqual(await ask(preview, { input: { ...input, expiresAt: '2031-01-01T00:00:00Z' } }), [
      'EXPIRY_INVALID',
    ]);
    assert.deepEqual((await test.keys.list({}, OPERATOR)).keys.length, 2);
  });

  it('an end by how long it is away, for a new key and for another, and what was replaced', async () => {
    const create = `mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) {
      apiKey { id expiresAt disabledAt grants } replaced { id name }
    } }`;
    const input = { name: 'CI', permissions: [{ resource: 'ME', actions: ['READ_OWN'] }], expiresIn: '90m' };
    const first = (await ask(create, { input })) as { createApiKey: { apiKey: { id: string }; replaced: object[] } };
    const { id } = first.createApiKey.apiKey;
    const expiresAt = new Date(test.time.now + 5_400_000).toISOString();
    assert.deepEqual(first.createApiKey, {
      apiKey: { id, expiresAt, disabledAt: null, grants: ['ME:READ_OWN'] },
      replaced: [],
    });
    const again = await ask(create, { input: { ...input, overwrite: true } });
    assert.deepEqual((again as typeof first).createApiKey.replaced, [{ id, name: 'CI' }]);
    const update = 'mutation ($input: UpdateApiKeyInput!) { updateApiKey(input: $input) { expiresAt } }';
    assert.deepEqual(await ask(update, { input: { id: root.id, expiresIn: '1h' } }), {
      updateApiKey: { expiresAt: new Date(test.time.now + 3_600_000).toISOString() },
    });
    assert.deepEqual(await ask(update, { input: { id: root.id, expiresIn: null } }), ['INPUT_INVALID']);
  });

  it('a grace that begins when the new secret has arrived, for those who may change the key', async () => {
    const { id } = await caller('CI', { roles: ['GUEST'] });
    await test.keys.rotate(id, { activate: 'on-first-use', grace: '1h' }, OPERATOR);
    const activate = 'mutation ($id: ID!) { activateApiKeyRotation(id: $id) { rotation { previousEndsAt } } }';
    const other = await caller('Other', { permissions: [...GUEST, 'API_KEY:UPDATE_OWN'] });
    assert.deepEqual(await ask(activate, { id }, other.secret), ['FORBIDDEN']);
    const previousEndsAt = new Date(test.time.now + 3_600_000).toISOString();
    for (const _ of ['begins', 'has begun']) {
      assert.deepEqual(await ask(activate, { id }), { activateApiKeyRotation: { rotation: { previousEndsAt } } });
      test.time.now += 60_000;
    }
    assert.deepEqual(await ask(activate, { id: root.id }), { activateApiKeyRotation: { rotation: null } });
  });

  it('why a key may do something, without the names of keys that the caller may not read', async () => {
    const { principal: parent } = await createPrincipal(test.keys, { name: 'Parent', roles: ['ADMIN'] });
    const { apiKey: child } = await test.keys.create({ name: 'Child', roles: ['ADMIN'] }, parent);
    const { secret } = await caller('Own', { permissions: ['API_KEY:READ_OWN'] });
    const access = `query ($id: ID!, $permission: String!) { apiKey(id: $id) {
      access(permission: $permission) { allowed permission grantedBy status deniedById deniedByName }
    } }`;
    const variables = { id: child.id, permission: 'docker:update_any' };
    const granted = { allowed: true, permission: 'DOCKER:UPDATE_ANY', grantedBy: ['ADMIN'], status: 'ACTIVE' };
    assert.deepEqual(await ask(access, variables), {
      apiKey: { access: { ...granted, deniedById: null, deniedByName: null } },
    });
    await test.keys.update(parent.apiKey.id, { roles: ['GUEST'] }, OPERATOR);
    const denied = { ...granted, allowed: false, deniedById: parent.apiKey.id };
    assert.deepEqual(await ask(access, variables), { apiKey: { access: { ...denied, deniedByName: 'Parent' } } });
    assert.deepEqual(await ask(access, variables, secret), { apiKey: null });
    assert.deepEqual(await ask(access, { ...variables, permission: 'DOCKER:FLY' }), ['PERMISSION_INVALID']);
    const grants = { permissions: ['API_KEY:READ_OWN', 'DOCKER:READ_ANY'] };
    await test.keys.update(parent.apiKey.id, { roles: ['ADMIN'] }, OPERATOR);
    const mid = await test.keys.create({ name: 'Mid', ...grants }, parent);
    await test.keys.update(parent.apiKey.id, { roles: [], permissions: ['API_KEY:READ_OWN'] }, OPERATOR);
    const own = { id: mid.apiKey.id, permission: 'DOCKER:READ_ANY' };
    assert.deepEqual(await ask(access, own, mid.key), {
      apiKey: {
        access: {
          allowed: false,
          permission: 'DOCKER:READ_ANY',
          grantedBy: ['DOCKER:READ_ANY'],
          status: 'ACTIVE',
          deniedById: parent.apiKey.id,
          deniedByName: null,
        },
      },
    });
  });

  it('the log by its numbers, one at a time', async () => {
    for (const name of ['A', 'B', 'C']) await caller(name, { roles: ['GUEST'] });
    const numbers = async (args: string) => {
      const data = await ask(`{ auditLog(${args}) { edges { node { number } } pageInfo { hasNextPage } } }`);
      if (Array.isArray(data)) return data;
      const { edges, pageInfo } = data['auditLog'] as {
        edges: { node: { number: number } }[];
        pageInfo: { hasNextPage: boolean };
      };
      return [...edges.map(({ node }) => node.number), pageInfo.hasNextPage];
    };
    assert.deepEqual(await numbers('beforeNumber: 3'), [2, 1, false]);
    assert.deepEqual(await numbers('first: 2, beforeNumber: 4'), [3, 2, true]);
    assert.deepEqual(await numbers('first: 2, afterNumber: 1'), [2, 3, true]);
    assert.deepEqual(await numbers('first: 2, afterNumber: 2'), [3, 4, false]);
    assert.deepEqual(await numbers('afterNumber: 4'), [false]);
    for (const args of ['beforeNumber: 3, afterNumber: 1', 'beforeNumber: -1', 'afterNumber: -1'])
      assert.deepEqual(await numbers(args), ['INPUT_INVALID'], args);
    const own = await caller('Reader', { permissions: ['LOGS:READ_ANY', 'API_KEY:READ_OWN'] });
    const seen = await ask('{ auditLog(afterNumber: 0) { edges { node { keyName } } } }', {}, own.secret);
    assert.deepEqual(seen, { auditLog: { edges: [{ node: { keyName: 'Reader' } }] } });
  });
});
