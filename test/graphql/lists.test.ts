import assert from 'node:assert/strict';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { createPrincipal } from '../support/keys.ts';
import { query, startTestService, type TestService } from '../support/server.ts';

const DAY = 86_400_000;

describe('lists of keys, over GraphQL', () => {
  let test: TestService;
  let admin: string;
  let ids: Record<string, string>;
  beforeEach(async () => {
    test = await startTestService();
    const { principal, secret } = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] });
    admin = secret;
    test.time.now += 1000;
    const { apiKey: child } = await test.keys.create({ name: 'Child', roles: ['GUEST'], expiresIn: '2d' }, principal);
    test.time.now += 1000;
    const { apiKey: other } = await test.keys.create({ name: 'Other', roles: ['VIEWER'], expiresIn: '9d' }, OPERATOR);
    ids = { Admin: principal.apiKey.id, Child: child.id, Other: other.id };
  });
  afterEach(() => test.stop());

  const ask = async (secret: string, document: string, variables = {}) => {
    const { body } = await query(test.url, secret, document, variables);
    return {
      data: body.data as Record<string, unknown>,
      codes: body.errors?.map(({ extensions }) => extensions['code']),
    };
  };
  const list = async (given: string, secret = admin) => {
    const { data } = await ask(secret, `{ apiKeyList(${given}) { keys { name } total hasMore sorted } }`);
    const { keys, ...page } = data['apiKeyList'] as { keys: { name: string }[]; total: number };
    return { names: keys.map(({ name }) => name), ...page };
  };

  it('are not narrowed by an empty list of roles or tags, in either kind of list', async () => {
    for (const filter of ['roles: []', 'tags: []']) {
      assert.equal((await list(filter)).total, 3);
      const { data } = await ask(admin, `{ apiKeys(${filter}) { edges { node { name } } } }`);
      assert.equal((data['apiKeys'] as { edges: unknown[] }).edges.length, 3, filter);
    }
  });

  it('are sorted and narrowed, with how many there are', async () => {
    const whole = { total: 3, hasMore: false, sorted: true };
    assert.deepEqual(await list('first: 2'), { names: ['Other', 'Child'], ...whole });
    assert.deepEqual(await list('first: 2, offset: 2'), { names: ['Admin'], ...whole });
    assert.deepEqual((await list('sort: NAME, descending: false')).names, ['Admin', 'Child', 'Other']);
    assert.deepEqual((await list('roles: [VIEWER]')).names, ['Other']);
    assert.deepEqual((await list('createdByOperator: true')).names, ['Other', 'Admin']);
    assert.deepEqual((await list(`createdBy: "${ids['Admin']}"`)).names, ['Child']);
    const until = new Date(test.time.now + 3 * DAY).toISOString();
    assert.deepEqual((await list(`expiresBefore: "${until}"`)).names, ['Child']);
    assert.deepEqual((await list('neverUsed: true, first: 9')).names, ['Other', 'Child', 'Admin']);
    const both = await ask(admin, `{ apiKeyList(createdBy: "x", createdByOperator: true) { total } }`);
    assert.deepEqual(both.codes, ['INPUT_INVALID']);
  });

  it('show the keys that a key has created, and all its parent keys', async () => {
    const document = `query ($id: ID!) { apiKey(id: $id) { branch { count lastUsedAt } ancestors { keyId name permissions { resource } } } }`;
    const { data } = await ask(admin, document, { id: ids['Admin'] });
    assert.deepEqual(data['apiKey'], { branch: { count: 1, lastUsedAt: null }, ancestors: [] });
    const { data: child } = await ask(admin, document, { id: ids['Child'] });
    assert.deepEqual(child['apiKey'], {
      branch: { count: 0, lastUsedAt: null },
      ancestors: [{ keyId: ids['Admin'], name: 'Admin', permissions: [] }],
    });
  });

  it('have only its own keys for one that may read no others', async () => {
    const may = { permissions: ['API_KEY:READ_OWN'] };
    const { secret } = await createPrincipal(test.keys, { name: 'Bea', ...may });
    assert.deepEqual((await list('first: 9', secret)).names, ['Bea']);
    const plan = `{ apiKeyChangePlan(ids: ["${ids['Child']}"], change: DELETE) { total changing { id } refused { reason } } }`;
    const { data } = await ask(secret, plan);
    assert.deepEqual(data['apiKeyChangePlan'], { total: 0, changing: [], refused: [] });
    const narrow = `mutation { narrowApiKeys(input: { ids: ["${ids['Child']}"] }) { keys { id } } }`;
    assert.deepEqual((await ask(secret, narrow)).codes, ['FORBIDDEN']);
  });

  it('are narrowed all together, or not at all', async () => {
    const { principal, secret } = await createPrincipal(test.keys, {
      name: 'Bea',
      permissions: ['API_KEY:READ_ANY', 'API_KEY:UPDATE_OWN', 'API_KEY:CREATE_OWN', 'ME:READ_OWN'],
    });
    const { apiKey: own } = await test.keys.create({ name: 'Own', permissions: ['ME:READ_OWN'] }, principal);
    const narrow = 'mutation ($input: NarrowApiKeysInput!) { narrowApiKeys(input: $input) { keys { name } } }';
    const refused = await ask(secret, narrow, { input: { ids: [own.id, ids['Other']] } });
    assert.deepEqual(refused.codes, ['FORBIDDEN']);
    const find = async (id: string) => (await test.keys.findById(id, OPERATOR))!;
    assert.equal((await find(own.id)).disabledAt, null);
    const expiresAt = new Date(test.time.now + 5 * DAY).toISOString();
    const { data } = await ask(admin, narrow, { input: { ids: [ids['Other'], ids['Child']], expiresAt } });
    assert.deepEqual(data['narrowApiKeys'], { keys: [{ name: 'Other' }] });
    assert.equal((await find(ids['Other']!)).expiresAt, Date.parse(expiresAt));
    assert.ok((await find(ids['Child']!)).expiresAt! < Date.parse(expiresAt));
    const past = await ask(admin, narrow, { input: { ids: [ids['Other']], expiresAt: '2020-01-01T00:00:00Z' } });
    assert.deepEqual(past.codes, ['EXPIRY_INVALID']);
  });
});
