import assert from 'node:assert/strict';
import { OPERATOR, principalOf } from '../../../src/keys/authorization/principal.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { createPrincipal, openTestKeys, type TestKeys } from '../../support/keys.ts';
import { query, startServer, type TestServer } from '../../support/server.ts';
import { applyDeclared } from './declared-keys.ts';

describeOnEach('pruning over GraphQL', () => {
  const PRUNE = `mutation { applyApiKeys(input: { keys: [], prune: true, dryRun: true }) { changes { action name } } }`;
  const PRUNING = ['API_KEY:UPDATE_ANY', 'API_KEY:DELETE_ANY', 'API_KEY:CREATE_OWN'];

  let test: TestKeys;
  let server: TestServer;
  beforeEach(async () => {
    test = await openTestKeys();
    server = await startServer(test.keys);
  });
  afterEach(async () => {
    await server.stop();
    await test.store.close();
  });

  it('names no key that the caller may not read', async () => {
    const { secret } = await createPrincipal(test.keys, { name: 'Pruner', permissions: PRUNING });
    const { secret: reader } = await createPrincipal(test.keys, {
      name: 'Reader',
      permissions: [...PRUNING, 'API_KEY:READ_ANY'],
    });
    await applyDeclared(test.keys, [{ name: 'Parent', roles: ['ADMIN'] }]);
    const parent = (await test.keys.findByName('Parent', OPERATOR))!;
    const ask = async (as: string) => (await query(server.url, as, PRUNE)).body;
    assert.deepEqual((await ask(secret)).errors?.[0]?.extensions, { code: 'FORBIDDEN', missing: ['API_KEY:READ_ANY'] });
    assert.deepEqual((await ask(reader)).data, {
      applyApiKeys: { changes: [{ action: 'DELETE', name: 'Parent' }] },
    });
    const [chain] = await test.keys.chainsOf([parent]);
    await test.keys.create({ name: 'Secret plan', roles: ['GUEST'] }, principalOf(chain!, test.keys.catalog));
    const refused = (await ask(secret)).errors![0]!;
    assert.equal(refused.extensions['code'], 'PRUNE_REFUSED');
    assert.match(refused.message, /because pruned keys created them: 1 key\./);
    assert.match((await ask(reader)).errors![0]!.message, /created them: "Secret plan"\./);
  });
});
