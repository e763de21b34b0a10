import assert from 'node:assert/strict';
import { startTestService, type TestService } from '../support/server.ts';
import { createPrincipal } from '../support/keys.ts';
import { query } from '../support/server.ts';

describe("an installation's own roles in GraphQL", () => {
  let test: TestService;
  let admin: string;
  before(async () => {
    test = await startTestService({ resources: ['WIKI'], roles: { EDITOR: ['WIKI:READ_ANY', 'WIKI:UPDATE_ANY'] } });
    admin = (await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] })).secret;
  });
  after(() => test.stop());

  it('are in the schema, with their permissions', async () => {
    const document =
      '{ __type(name: "Role") { enumValues { name description } } permissions { roles { role description permissions { resource actions } } } }';
    const { body } = await query(test.url, admin, document);
    const data = body.data as {
      __type: { enumValues: { name: string; description: string }[] };
      permissions: { roles: object[] };
    };
    const description = 'Allows WIKI:READ_ANY and WIKI:UPDATE_ANY.';
    assert.deepEqual(data.__type.enumValues.at(-1), { name: 'EDITOR', description });
    const permissions = [{ resource: 'WIKI', actions: ['READ_ANY', 'UPDATE_ANY'] }];
    assert.deepEqual(data.permissions.roles.at(-1), { role: 'EDITOR', description, permissions });
  });

  it('are granted, filtered by and previewed as built-in ones', async () => {
    const created = await query(
      test.url,
      admin,
      `mutation {
        createApiKey(input: { name: "By hand", roles: [EDITOR] }) { apiKey { roles unknownGrants } }
      }`,
    );
    assert.deepEqual(created.body, {
      data: {
        createApiKey: { apiKey: { roles: ['EDITOR'], unknownGrants: [] } },
      },
    });
    const document =
      '{ apiKeys(roles: [EDITOR]) { edges { node { roles } } } previewPermissions(roles: [EDITOR]) { resource actions } }';
    const { body } = await query(test.url, admin, document);
    assert.deepEqual(body.data, {
      apiKeys: { edges: [{ node: { roles: ['EDITOR'] } }] },
      previewPermissions: [{ resource: 'WIKI', actions: ['READ_ANY', 'READ_OWN', 'UPDATE_ANY', 'UPDATE_OWN'] }],
    });
  });
});
