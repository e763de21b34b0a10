import assert from 'node:assert/strict';
import { OPERATOR, type Principal } from '../../src/keys/authorization/principal.ts';
import { describeOnEach } from '../support/dialects.ts';
import { authenticate, createPrincipal } from '../support/keys.ts';
import { type GraphQLReply, query, startTestService, type TestService } from '../support/server.ts';

interface Bearer {
  secret: string;
  principal: Principal;
}

const OVERWRITE = `mutation ($name: String!) {
  createApiKey(input: { name: $name, permissions: [{ resource: API_KEY, actions: [CREATE_OWN] }], overwrite: true }) {
    key apiKey { id name createdBy }
  }
}`;

describeOnEach('overwriting a key over GraphQL', () => {
  let test: TestService;

  beforeEach(async () => {
    test = await startTestService();
  });
  afterEach(() => test.stop());

  const make = (name: string, actions: string[], by: Principal | typeof OPERATOR = OPERATOR) =>
    createPrincipal(test.keys, { name, permissions: actions.map((action) => `API_KEY:${action}`) }, by);
  const overwrite = ({ secret }: Bearer, name: string) => query(test.url, secret, OVERWRITE, { name });
  const idOf = ({ principal }: Bearer) => principal.apiKey.id;
  const all = async () => (await test.keys.list({}, OPERATOR)).keys;
  const gets = async (secret: string) => (await query(test.url, secret, '{ __typename }')).status;
  const created = ({ body }: GraphQLReply) => {
    assert.equal(body.errors, undefined);
    return body.data!['createApiKey'] as {
      key: string;
      apiKey: { id: string; name: string; createdBy: string | null };
    };
  };

  it('requires the permission to delete it: OWN for itself and the keys it created, ANY for all others', async () => {
    const maker = await make('Maker', ['CREATE_ANY', 'READ_ANY', 'UPDATE_ANY']);
    await make('Child', ['CREATE_OWN'], maker.principal);
    await make('Other', ['CREATE_OWN']);
    const before = await all();
    for (const [name, missing] of [
      ['Child', 'API_KEY:DELETE_OWN'],
      ['Maker', 'API_KEY:DELETE_OWN'],
      ['Other', 'API_KEY:DELETE_ANY'],
    ] as const) {
      const { body } = await overwrite(maker, name);
      assert.deepEqual(
        body.errors?.map(({ path, extensions }) => ({ path, extensions })),
        [{ path: ['createApiKey'], extensions: { code: 'FORBIDDEN', missing: [missing] } }],
        name,
      );
    }
    assert.deepEqual(await all(), before);
  });

  it('with DELETE_OWN replaces a key that it created, with all its descendants, and no other', async () => {
    const owner = await make('Owner', ['CREATE_OWN', 'DELETE_OWN']);
    const child = await make('Child', ['CREATE_OWN'], owner.principal);
    const grandchild = await make('Grandchild', ['CREATE_OWN'], child.principal);
    const { key, apiKey } = created(await overwrite(owner, 'Child'));
    assert.deepEqual([apiKey.name, apiKey.createdBy], ['Child', idOf(owner)]);
    assert.notEqual(apiKey.id, idOf(child));
    assert.deepEqual(await Promise.all([child.secret, grandchild.secret, key].map(gets)), [401, 401, 200]);
    // A grandchild is not its own.
    await make(
      'Grandchild',
      ['CREATE_OWN'],
      ((await authenticate(test.keys, key)) as { principal: Principal }).principal,
    );
    assert.deepEqual((await overwrite(owner, 'Grandchild')).body.errors?.[0]?.extensions['missing'], [
      'API_KEY:DELETE_ANY',
    ]);
  });

  it('lets a key replace itself: the new key has the same creator', async () => {
    const parent = await make('Parent', ['CREATE_OWN', 'DELETE_OWN']);
    for (const by of [OPERATOR, parent.principal] as const) {
      const self = await make('Self', ['CREATE_OWN', 'DELETE_OWN'], by);
      const child = await make('Child', ['CREATE_OWN'], self.principal);
      const { key, apiKey } = created(await overwrite(self, 'Self'));
      assert.equal(apiKey.createdBy, by === OPERATOR ? null : idOf(parent));
      assert.deepEqual(await Promise.all([self.secret, child.secret, key].map(gets)), [401, 401, 200]);
      await test.keys.delete([apiKey.id], OPERATOR);
    }
  });

  it('lets no key replace one that it descends from, whose place it would take', async () => {
    const top = await make('Top', ['CREATE_OWN', 'DELETE_ANY']);
    const middle = await make('Middle', ['CREATE_OWN', 'DELETE_ANY'], top.principal);
    const bottom = await make('Bottom', ['CREATE_OWN', 'DELETE_ANY'], middle.principal);
    for (const name of ['Middle', 'Top'])
      assert.equal((await overwrite(bottom, name)).body.errors?.[0]?.extensions['code'], 'FORBIDDEN');
    assert.deepEqual(await Promise.all([top, middle, bottom].map(({ secret }) => gets(secret))), [200, 200, 200]);
  });

  it('applies to the rest of the same request: a key that has replaced or weakened itself may do no more', async () => {
    const self = await make('Self', ['CREATE_OWN', 'UPDATE_OWN', 'DELETE_OWN']);
    const weakened = await query(
      test.url,
      self.secret,
      `mutation ($id: ID!) {
        a: updateApiKey(input: { id: $id, permissions: [{ resource: API_KEY, actions: [CREATE_OWN, DELETE_OWN] }] }) { name }
        b: updateApiKey(input: { id: $id, description: "again" }) { name }
        c: createApiKey(input: { name: "New", permissions: [{ resource: API_KEY, actions: [UPDATE_OWN] }] }) { key }
        d: deleteApiKeys(ids: [$id]) { deleted }
        e: createApiKey(input: { name: "New", permissions: [{ resource: API_KEY, actions: [CREATE_OWN] }] }) { key }
      }`,
      { id: idOf(self) },
    );
    assert.deepEqual(weakened.body.data, { a: { name: 'Self' }, b: null, c: null, d: { deleted: 1 }, e: null });
    assert.deepEqual(
      weakened.body.errors?.map(({ path, extensions }) => [path, extensions]),
      [
        [['b'], { code: 'FORBIDDEN', missing: ['API_KEY:UPDATE_OWN'] }],
        [['c'], { code: 'FORBIDDEN', missing: ['API_KEY:UPDATE_OWN'] }],
        [['e'], { code: 'FORBIDDEN' }],
      ],
    );
    assert.deepEqual(await all(), []);
  });
});
