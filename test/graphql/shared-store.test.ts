import assert from 'node:assert/strict';
import { describeOnEach } from '../support/dialects.ts';
import { createPrincipal, openTestKeys, type TestKeys } from '../support/keys.ts';
import { query, startServer, type TestServer } from '../support/server.ts';
import { tempStore } from '../support/temp.ts';

describeOnEach('a key of a store that two hosts share', () => {
  let other: TestKeys;
  let test: TestKeys;
  let server: TestServer;
  before(async () => {
    const database = tempStore();
    other = await openTestKeys({ database, resources: ['TAPE'], roles: { ARCHIVIST: ['TAPE:READ_ANY'] } });
    test = await openTestKeys({ database });
    server = await startServer(test.keys);
  });
  after(async () => {
    await server.stop();
    await Promise.all([test, other].map(({ store }) => store.close()));
  });

  it('is shown without what only the other host declares, which is named apart', async () => {
    const permissions = ['ME:READ_OWN', 'TAPE:READ_ANY', 'TAPE:DELETE_OWN'];
    const { secret } = await createPrincipal(other.keys, {
      name: 'Both',
      roles: ['ARCHIVIST'],
      permissions,
    });
    const known = [{ resource: 'ME', actions: ['READ_OWN'] }];
    const expected = {
      permissions: known,
      effectivePermissions: known,
    };
    const fields = Object.keys(expected).map((name) => `${name} { resource actions }`);
    const { body } = await query(server.url, secret, `{ me { roles unknownGrants ${fields.join(' ')} } }`);
    const unknownGrants = ['ARCHIVIST', 'TAPE:READ_ANY', 'TAPE:DELETE_OWN'];
    assert.deepEqual(body, { data: { me: { roles: [], unknownGrants, ...expected } } });
  });
});
