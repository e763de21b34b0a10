import assert from 'node:assert/strict';
import { describeOnEach } from '../support/dialects.ts';
import { createPrincipal } from '../support/keys.ts';
import { query, startTestService, type TestService } from '../support/server.ts';

interface ChildKeys {
  count: number;
  hasMore: boolean;
  lastUsedAt: string | null;
  keys: { name: string }[];
}

describeOnEach('the child keys of a key, over GraphQL', () => {
  let test: TestService;
  let admin: string;
  let team: Awaited<ReturnType<typeof createPrincipal>>;
  let last: Awaited<ReturnType<typeof createPrincipal>>;
  before(async () => {
    test = await startTestService();
    ({ secret: admin } = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] }));
    const grants = { roles: ['GUEST'], permissions: ['API_KEY:CREATE_OWN', 'API_KEY:READ_OWN'] };
    team = await createPrincipal(test.keys, { name: 'Team', ...grants });
    const build = await createPrincipal(test.keys, { name: 'Build', ...grants }, team.principal);
    last = await createPrincipal(test.keys, { name: 'Nightly', ...grants }, build.principal);
    test.time.now += 1000;
    await createPrincipal(test.keys, { name: 'Release', ...grants }, team.principal);
    test.time.now += 1000;
    await query(test.url, last.secret, '{ online }');
    await test.keys.finishActivity();
  });
  after(() => test.stop());
  const childKeys = async (secret: string, args = '', name = 'Team') => {
    const fields = `descendants${args} { count hasMore lastUsedAt keys { name } }`;
    const { body } = await query(test.url, secret, `{ apiKey(name: "${name}") { name ${fields} } }`);
    const { data, errors } = body as { data: { apiKey: { descendants: ChildKeys | null } }; errors?: object[] };
    const { keys, ...others } = data.apiKey.descendants ?? {};
    return { ...others, names: keys?.map((key) => key.name), errors };
  };

  it('are answered with their child keys, the nearest first, and when one of them was last used', async () => {
    assert.deepEqual(await childKeys(admin), {
      count: 3,
      hasMore: false,
      lastUsedAt: '2030-01-01T00:00:02.000Z',
      names: ['Build', 'Release', 'Nightly'],
      errors: undefined,
    });
    const none = { count: 0, hasMore: false, lastUsedAt: null, names: [], errors: undefined };
    assert.deepEqual(await childKeys(admin, '', 'Nightly'), none);
  });

  it('are listed up to a maximum, with a note that there are more', async () => {
    const { count, hasMore, names } = await childKeys(admin, '(first: 1)');
    assert.deepEqual({ count, hasMore, names }, { count: 1, hasMore: true, names: ['Build'] });
    assert.equal((await childKeys(admin, '(first: 3)')).hasMore, false);
    for (const first of [0, 501]) {
      const { errors } = await childKeys(admin, `(first: ${first})`);
      assert.equal(JSON.stringify(errors).match(/"INPUT_INVALID"/g)?.length, 1);
    }
  });

  it('are counted for callers that may read the parent key, and listed as far as they may read them', async () => {
    const { count, names } = await childKeys(team.secret);
    assert.deepEqual({ count, names }, { count: 3, names: ['Build', 'Release'] });
  });

  it('of many keys are bounded by their cost', async () => {
    const page = (first: number) =>
      `{ apiKeys(first: 100) { edges { node { descendants(first: ${first}) { count } } } } }`;
    assert.equal((await query(test.url, admin, page(5))).body.errors, undefined);
    assert.equal((await query(test.url, admin, page(50))).body.errors![0]!.extensions['code'], 'COST_EXCEEDED');
  });
});
