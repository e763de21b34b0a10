import assert from 'node:assert/strict';
import { grantsOf, People } from '../../../src/features/people/people.ts';
import { principalOf } from '../../../src/keys/authorization/principal.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { createPrincipal } from '../../support/keys.ts';
import { query, startTestService, type TestService } from '../../support/server.ts';

const ADA = { issuer: 'https://id.example.org', subject: '248', name: 'ada@example.org' };

describeOnEach('a person over GraphQL', () => {
  let test: TestService;
  let admin: string;
  let id: string;
  beforeEach(async () => {
    test = await startTestService();
    admin = (await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] })).secret;
    const { apiKey } = (await test.keys
      .feature(People)
      .signIn(ADA, grantsOf({ '*': ['VIEWER', 'API_KEY:CREATE_OWN'] }, [])))!;
    id = apiKey.id;
    const [chain] = await test.keys.chainsOf([apiKey]);
    await test.keys.create({ name: 'CI', roles: ['VIEWER'] }, principalOf(chain!, test.keys.catalog));
  });
  afterEach(() => test.stop());

  it('is listed, with their keys', async () => {
    const fields = '{ edges { node { name prefix person { issuer subject name } } } }';
    const { body } = await query(test.url, admin, `{ apiKeys(owner: "ADA@example.org") ${fields} }`);
    const { edges } = body.data!['apiKeys'] as { edges: { node: { name: string; prefix: string; person: unknown } }[] };
    const nodes = edges.map(({ node }) => node).toSorted((one, other) => one.name.localeCompare(other.name));
    assert.deepEqual(
      nodes.map(({ name, person }) => [name, person]),
      [
        ['ada example org', ADA],
        ['CI', null],
      ],
    );
    assert.match(nodes[0]!.prefix, /^person-\w{12}$/);
  });

  for (const [what, mutation] of Object.entries({
    rotated: '($id: ID!) { rotateApiKey(input: { id: $id }) { key } }',
    'granted more': '($id: ID!) { updateApiKey(input: { id: $id, roles: [ADMIN] }) { id } }',
    renamed: '($id: ID!) { updateApiKey(input: { id: $id, name: "Root" }) { id } }',
    replaced: '{ createApiKey(input: { name: "ada example org", roles: [GUEST], overwrite: true }) { key } }',
  }))
    it(`cannot be ${what}`, async () => {
      const { body } = await query(test.url, admin, `mutation Change${mutation}`, { id });
      assert.deepEqual(
        body.errors?.map(({ extensions }) => extensions['code']),
        ['NOT_FOR_PEOPLE'],
      );
    });
});
