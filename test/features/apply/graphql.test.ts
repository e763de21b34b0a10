import assert from 'node:assert/strict';
import { countKeys, createPrincipal } from '../../support/keys.ts';
import { query, startTestService, type TestService } from '../../support/server.ts';

const APPLY = `mutation ($input: ApplyApiKeysInput!) {
  applyApiKeys(input: $input) { unchanged changes { action name changes { field before after } } created { key apiKey { id name managed } } }
}`;

interface Applied {
  unchanged: number;
  changes: {
    action: string;
    name: string;
    changes: { field: string; before: string | null; after: string | null }[];
  }[];
  created: { key: string; apiKey: { id: string; name: string; managed: boolean } }[];
}

describe('declared keys, over GraphQL', () => {
  let test: TestService;
  let admin: string;
  beforeEach(async () => {
    test = await startTestService();
    ({ secret: admin } = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] }));
  });
  afterEach(() => test.stop());
  const apply = async (input: object, secret = admin) => {
    const { body } = await query(test.url, secret, APPLY, { input });
    return { applied: body.data?.['applyApiKeys'] as Applied, error: body.errors?.[0] };
  };
  const declared = [
    { name: 'CI', roles: ['VIEWER'], permissions: [{ resource: 'DOCKER', actions: ['UPDATE_ANY'] }] },
    { name: 'Backup', roles: ['GUEST'], description: 'nightly', expiresAt: '2031-01-01T00:00:00Z' },
  ];

  it('are created, reported as unchanged, updated, and pruned', async () => {
    const first = (await apply({ keys: declared })).applied;
    assert.deepEqual(
      first.created.map(({ apiKey }) => [apiKey.name, apiKey.managed]),
      [
        ['CI', true],
        ['Backup', true],
      ],
    );
    assert.equal((await query(test.url, first.created[0]!.key, '{ me { name } }')).status, 200);
    assert.deepEqual((await apply({ keys: declared, prune: true })).applied, {
      unchanged: 2,
      changes: [],
      created: [],
    });
    const { applied } = await apply({ keys: [{ ...declared[0], roles: ['GUEST'] }], prune: true });
    assert.deepEqual(applied, {
      unchanged: 0,
      changes: [
        { action: 'UPDATE', name: 'CI', changes: [{ field: 'roles', before: '["VIEWER"]', after: '["GUEST"]' }] },
        { action: 'DELETE', name: 'Backup', changes: [] },
      ],
      created: [],
    });
    assert.equal((await query(test.url, first.created[1]!.key, '{ me { name } }')).status, 401);
  });

  it('are only planned with dryRun', async () => {
    const { applied } = await apply({ keys: declared, dryRun: true });
    assert.deepEqual(
      [applied.changes.map(({ action, name }) => `${action} ${name}`), applied.created],
      [['CREATE CI', 'CREATE Backup'], []],
    );
    assert.equal(await countKeys(test.store.repository), 1);
  });

  it('are all refused where one is invalid, and where the caller lacks a permission', async () => {
    const broken = await apply({ keys: [...declared, { name: 'a-b', roles: ['GUEST'] }] });
    assert.equal(broken.error!.extensions['code'], 'DECLARATION_INVALID');
    assert.match(broken.error!.message, /keys\[2\]\.name/);
    const { secret } = await createPrincipal(test.keys, {
      name: 'Lesser',
      permissions: ['API_KEY:CREATE_ANY', 'API_KEY:UPDATE_ANY'],
    });
    assert.equal(
      (await apply({ keys: declared }, secret)).error!.extensions['code'],
      'FORBIDDEN',
      'grants more than it holds',
    );
    const many = Array.from({ length: 1001 }, (_, index) => ({ name: `Key ${index}`, roles: ['GUEST'] }));
    assert.equal((await apply({ keys: many })).error!.extensions['code'], 'INPUT_INVALID');
    assert.equal(await countKeys(test.store.repository), 2);
  });
});
