import assert from 'node:assert/strict';
import { OPERATOR, type Principal } from '../../src/keys/authorization/principal.ts';
import { describeOnEach } from '../support/dialects.ts';
import { createPrincipal } from '../support/keys.ts';
import { type GraphQLReply, query, startTestService, type TestService } from '../support/server.ts';

const OWN = ['API_KEY:CREATE_OWN', 'API_KEY:READ_OWN', 'API_KEY:UPDATE_OWN', 'API_KEY:DELETE_OWN'];

interface Bearer {
  secret: string;
  principal: Principal;
}

describeOnEach('a key with the OWN permissions', () => {
  let test: TestService;
  let own: Bearer;
  let child: Bearer;
  let grandchild: Bearer;
  let other: Bearer;

  beforeEach(async () => {
    test = await startTestService();
    const create = (name: string, by: Principal | typeof OPERATOR = OPERATOR) => {
      test.time.now += 1;
      return createPrincipal(test.keys, { name, permissions: OWN }, by);
    };
    own = await create('Own');
    child = await create('Child', own.principal);
    grandchild = await create('Grandchild', child.principal);
    other = await create('Other');
  });
  afterEach(() => test.stop());

  const ask = (document: string, variables?: Record<string, unknown>) =>
    query(test.url, own.secret, document, variables);
  const idOf = ({ principal }: Bearer) => principal.apiKey.id;
  const refusal = ({ body }: GraphQLReply) => body.errors?.map(({ message, extensions }) => ({ message, extensions }));
  const lacks = (permission: string) => [
    { message: `This key lacks ${permission}.`, extensions: { code: 'FORBIDDEN', missing: [permission] } },
  ];

  it('lists itself and its children, page by page and searched', async () => {
    const list = async (args: string) =>
      (await ask(`{ apiKeys${args} { edges { node { name } cursor } pageInfo { hasNextPage } } }`)).body.data![
        'apiKeys'
      ];
    const names = async (args: string) =>
      ((await list(args)) as { edges: { node: { name: string } }[] }).edges.map(({ node }) => node.name);
    assert.deepEqual(await names(''), ['Own', 'Child']);
    const { edges, pageInfo } = (await list('(first: 1)')) as {
      edges: { cursor: string }[];
      pageInfo: { hasNextPage: boolean };
    };
    assert.equal(pageInfo.hasNextPage, true);
    assert.deepEqual(await names(`(after: "${edges[0]!.cursor}")`), ['Child']);
    assert.deepEqual(await names('(search: "child")'), ['Child']);
    assert.deepEqual(await names('(search: "other")'), []);
  });

  it('finds itself and its children by id and by name, and gets null alike for other keys and for unknown ones', async () => {
    for (const bearer of [own, child]) {
      const { id, name } = bearer.principal.apiKey;
      const { body } = await ask(
        'query ($id: ID, $name: String) { a: apiKey(id: $id) { name } b: apiKey(name: $name) { id } }',
        {
          id,
          name,
        },
      );
      assert.deepEqual(body, { data: { a: { name }, b: { id } } });
    }
    for (const { id, name } of [grandchild.principal.apiKey, other.principal.apiKey, { id: 'none', name: 'None' }]) {
      const { body } = await ask(
        'query ($id: ID, $name: String) { a: apiKey(id: $id) { name } b: apiKey(name: $name) { id } }',
        {
          id,
          name,
        },
      );
      assert.deepEqual(body, { data: { a: null, b: null } });
    }
  });

  it('updates itself and its children, and no others', async () => {
    const update = (id: string) =>
      ask('mutation ($id: ID!) { updateApiKey(input: { id: $id, description: "mine" }) { description } }', { id });
    for (const bearer of [own, child])
      assert.deepEqual((await update(idOf(bearer))).body, { data: { updateApiKey: { description: 'mine' } } });
    for (const bearer of [grandchild, other]) {
      assert.deepEqual(refusal(await update(idOf(bearer))), lacks('API_KEY:UPDATE_ANY'));
      assert.equal((await test.keys.findById(idOf(bearer), OPERATOR))?.description, null);
    }
  });

  it('deletes nothing where one of several is not its own', async () => {
    const reply = await ask('mutation ($ids: [ID!]!) { deleteApiKeys(ids: $ids) { deleted } }', {
      ids: [idOf(child), idOf(other)],
    });
    assert.deepEqual(refusal(reply), lacks('API_KEY:DELETE_ANY'));
    assert.ok(await test.keys.findById(idOf(child), OPERATOR));
  });

  it('deletes a child with all its descendants, which the count and the list include', async () => {
    const { body } = await ask('mutation ($ids: [ID!]!) { deleteApiKeys(ids: $ids) { deleted keys { id name } } }', {
      ids: [idOf(child), 'none'],
    });
    const gone = [
      { id: idOf(child), name: 'Child' },
      { id: idOf(grandchild), name: 'Grandchild' },
    ];
    assert.deepEqual(body, { data: { deleteApiKeys: { deleted: 2, keys: gone } } });
    assert.equal((await query(test.url, grandchild.secret, '{ apiKeys { edges { cursor } } }')).status, 401);
    assert.equal((await query(test.url, other.secret, '{ apiKeys { edges { cursor } } }')).status, 200);
  });

  it('may delete itself with all its descendants, and is refused then', async () => {
    const { body } = await ask('mutation ($ids: [ID!]!) { deleteApiKeys(ids: $ids) { deleted } }', {
      ids: [idOf(own)],
    });
    assert.deepEqual(body, { data: { deleteApiKeys: { deleted: 3 } } });
    assert.equal((await ask('{ __typename }')).status, 401);
  });

  it('owns the keys that it creates', async () => {
    const { body } = await ask(
      'mutation { createApiKey(input: { name: "New", permissions: [{ resource: API_KEY, actions: [READ_OWN] }] }) { apiKey { id createdBy } } }',
    );
    const { apiKey } = body.data!['createApiKey'] as { apiKey: { id: string; createdBy: string } };
    assert.equal(apiKey.createdBy, idOf(own));
    assert.deepEqual((await ask('query ($id: ID) { apiKey(id: $id) { name } }', { id: apiKey.id })).body, {
      data: { apiKey: { name: 'New' } },
    });
  });
});
