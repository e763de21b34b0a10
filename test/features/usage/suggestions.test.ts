import assert from 'node:assert/strict';
import { requirePermission } from '../../../src/keys/authorization/principal.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { createPrincipal, openTestKeys } from '../../support/keys.ts';
import { query, startServer, startTestService } from '../../support/server.ts';
import { tempStore } from '../../support/temp.ts';

const FIELDS = ['usedPermissions', 'suggestedPermissions', 'unusedPermissions']
  .map((field) => `${field} { resource actions }`)
  .join(' ');

describeOnEach('a key over GraphQL', () => {
  it('reports which grants were used, which would suffice, and which are unused', async () => {
    const test = await startTestService();
    const { secret: admin } = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] });
    const granted = { name: 'CI', roles: ['GUEST'], permissions: ['DOCKER:READ_ANY'] };
    const { secret } = await createPrincipal(test.keys, granted);
    await query(test.url, secret, '{ me { name } online }');
    await test.keys.finishActivity();
    const used = [
      { resource: 'ME', actions: ['READ_OWN'] },
      { resource: 'ONLINE', actions: ['READ_ANY'] },
    ];
    assert.deepEqual((await query(test.url, admin, `{ apiKey(name: "CI") { ${FIELDS} } }`)).body.data, {
      apiKey: {
        usedPermissions: used,
        suggestedPermissions: used,
        unusedPermissions: [
          { resource: 'WELCOME', actions: ['READ_ANY', 'READ_OWN'] },
          { resource: 'DOCKER', actions: ['READ_ANY', 'READ_OWN'] },
        ],
      },
    });
    await test.stop();
  });

  it('has no use of what only another host declares', async () => {
    const database = tempStore();
    const other = await openTestKeys({ database, resources: ['TAPE'] });
    const { secret, principal } = await createPrincipal(other.keys, {
      name: 'Both',
      permissions: ['ME:READ_OWN', 'TAPE:READ_ANY', 'TAPE:DELETE_OWN'],
    });
    requirePermission(principal, 'TAPE', 'READ_ANY');
    await other.keys.finishActivity();
    const test = await openTestKeys({ database });
    const server = await startServer(test.keys);
    assert.deepEqual((await query(server.url, secret, `{ me { ${FIELDS} } }`)).body.data, {
      me: {
        usedPermissions: [],
        suggestedPermissions: [],
        unusedPermissions: [{ resource: 'ME', actions: ['READ_OWN'] }],
      },
    });
    await server.stop();
    await Promise.all([test, other].map(({ store }) => store.close()));
  });
});
