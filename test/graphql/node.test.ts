import assert from 'node:assert/strict';
import { OPERATOR, type Principal } from '../../src/keys/authorization/principal.ts';
import type { NewKey } from '../../src/keys/key/key-change.ts';
import { describeOnEach } from '../support/dialects.ts';
import { createPrincipal } from '../support/keys.ts';
import { query, startTestService, type TestService } from '../support/server.ts';

/** The query with which Relay refetches a fragment. */
const REFETCH = 'query Refetch($id: ID!) { node(id: $id) { __typename ...Row id } } fragment Row on ApiKey { name }';

describeOnEach('node', () => {
  let test: TestService;
  before(async () => {
    test = await startTestService();
  });
  after(() => test.stop());

  const create = (name: string, permissions: NonNullable<NewKey['permissions']>, by?: Principal) =>
    createPrincipal(test.keys, { name, permissions }, by ?? OPERATOR);
  const fetchAgain = async (secret: string, id: string) => (await query(test.url, secret, REFETCH, { id })).body;

  it('finds a key by the id that a list, a mutation or `me` has given', async () => {
    const { secret, principal } = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] });
    const { body } = await query(
      test.url,
      secret,
      `mutation { createApiKey(input: { name: "Made", roles: [GUEST] }) { apiKey { id } } }`,
    );
    const { id } = (body.data!['createApiKey'] as { apiKey: { id: string } }).apiKey;
    assert.deepEqual(await fetchAgain(secret, id), { data: { node: { __typename: 'ApiKey', name: 'Made', id } } });
    const own = principal.apiKey.id;
    assert.deepEqual(await fetchAgain(secret, own), {
      data: { node: { __typename: 'ApiKey', name: 'Admin', id: own } },
    });
  });

  it('finds what the key may read, and nothing else, as if it were not there', async () => {
    const parent = await create('Parent', ['API_KEY:READ_OWN', 'API_KEY:CREATE_OWN']);
    const child = await create('Child', ['API_KEY:READ_OWN', 'API_KEY:CREATE_OWN'], parent.principal);
    const grandchild = await create('Grandchild', ['API_KEY:READ_OWN'], child.principal);
    const reader = await create('Reader', ['API_KEY:READ_ANY']);
    const nobody = await create('Nobody', ['ME:READ_OWN']);
    const nameFor = async (secret: string, id: string) =>
      ((await fetchAgain(secret, id)).data!['node'] as { name: string } | null)?.name;
    for (const { principal } of [parent, child]) {
      const { id, name } = principal.apiKey;
      assert.equal(await nameFor(parent.secret, id), name);
    }
    for (const id of [grandchild.principal.apiKey.id, reader.principal.apiKey.id, 'none', '', 'x'.repeat(10_000), '\0'])
      assert.equal(await nameFor(parent.secret, id), undefined);
    assert.equal(await nameFor(reader.secret, grandchild.principal.apiKey.id), 'Grandchild');
    const { data, errors } = await fetchAgain(nobody.secret, nobody.principal.apiKey.id);
    assert.deepEqual(
      [data, errors![0]!.path, errors![0]!.extensions],
      [{ node: null }, ['node'], { code: 'FORBIDDEN', missing: ['API_KEY:READ_OWN'] }],
    );
  });
});
