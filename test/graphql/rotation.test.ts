import assert from 'node:assert/strict';
import { describeOnEach } from '../support/dialects.ts';
import { createPrincipal } from '../support/keys.ts';
import { query, startTestService, type TestService } from '../support/server.ts';

const ROTATE = `mutation ($input: RotateApiKeyInput!) {
  rotateApiKey(input: $input) { key apiKey { id prefix rotation { startedAt previousPrefix previousEndsAt previousLastUsedAt } } }
}`;

describeOnEach('rotating, and the use of keys, over GraphQL', () => {
  let test: TestService;
  let admin: string;
  let id: string;
  let old: string;
  beforeEach(async () => {
    test = await startTestService();
    ({ secret: admin } = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] }));
    const created = await createPrincipal(test.keys, {
      name: 'CI',
      roles: ['GUEST'],
      permissions: ['DOCKER:READ_ANY'],
    });
    [id, old] = [created.principal.apiKey.id, created.secret];
  });
  afterEach(() => test.stop());
  const ask = async (secret: string, document: string, variables?: Record<string, unknown>) =>
    (await query(test.url, secret, document, variables)).body;
  type Rotated = { key: string; apiKey: { prefix: string; rotation: Record<string, string | null> } };
  const rotate = async (input: object = {}) => {
    const { data, errors } = await ask(admin, ROTATE, { input: { id, ...input } });
    return { ...(data?.['rotateApiKey'] as Rotated | null), error: errors?.[0] };
  };

  it('returns the new secret, and reports the previous one while it is accepted', async () => {
    const { key, apiKey } = await rotate({ grace: '1h' });
    assert.deepEqual(apiKey!.rotation, {
      startedAt: '2030-01-01T00:00:00.000Z',
      previousPrefix: `${old.slice(0, 17)}…`,
      previousEndsAt: '2030-01-01T01:00:00.000Z',
      previousLastUsedAt: null,
    });
    for (const secret of [old, key!]) assert.deepEqual((await ask(secret, '{ online }')).data, { online: true });
    await test.keys.finishActivity();
    const fields = 'managed uses lastUsedAt rotation { previousLastUsedAt }';
    const { data } = await ask(admin, `{ apiKey(name: "CI") { ${fields} } }`);
    const now = '2030-01-01T00:00:00.000Z';
    assert.deepEqual(data, {
      apiKey: { managed: false, uses: 3, lastUsedAt: now, rotation: { previousLastUsedAt: now } },
    });
    test.time.now += 3_600_000;
    assert.equal((await query(test.url, old, '{ online }')).status, 401);
    assert.deepEqual((await ask(admin, '{ apiKey(name: "CI") { rotation { startedAt } } }')).data, {
      apiKey: { rotation: null },
    });
  });

  it('defaults to 24 hours and NOW, for null too', async () => {
    assert.equal(
      (await rotate({ grace: null, activate: null })).apiKey!.rotation['previousEndsAt'],
      '2030-01-02T00:00:00.000Z',
    );
    const { error } = await rotate();
    assert.equal(error!.extensions['code'], 'ROTATION_IN_PROGRESS');
    assert.match(error!.message, /finishApiKeyRotation or rollBackApiKeyRotation/);
  });

  it('waits for the first use on request, and can be finished and rolled back', async () => {
    const first = await rotate({ activate: 'ON_FIRST_USE' });
    assert.equal(first.apiKey!.rotation['previousEndsAt'], null);
    const back = await ask(
      admin,
      'mutation ($id: ID!) { rollBackApiKeyRotation(id: $id) { prefix rotation { startedAt } } }',
      { id },
    );
    assert.deepEqual(back.data, { rollBackApiKeyRotation: { prefix: `${old.slice(0, 17)}…`, rotation: null } });
    const second = await rotate({ activate: 'ON_FIRST_USE' });
    const finish = 'mutation ($id: ID!) { finishApiKeyRotation(id: $id) { prefix } }';
    assert.deepEqual((await ask(admin, finish, { id })).data, {
      finishApiKeyRotation: { prefix: `${second.key!.slice(0, 17)}…` },
    });
    assert.equal((await ask(admin, finish, { id })).errors![0]!.extensions['code'], 'ROTATION_NONE');
    assert.equal((await rotate({ grace: 'soon' })).error!.extensions['code'], 'EXPIRY_INVALID');
  });

  it('is refused to callers that may not change the key, or hold less than it', async () => {
    const { secret } = await createPrincipal(test.keys, { name: 'Less', permissions: ['API_KEY:UPDATE_ANY'] });
    const { errors } = await ask(secret, ROTATE, { input: { id } });
    assert.equal(errors![0]!.extensions['code'], 'FORBIDDEN');
    assert.equal((await ask(old, ROTATE, { input: { id } })).errors![0]!.extensions['code'], 'FORBIDDEN');
  });

  it('reads the audit log page by page, the newest first', async () => {
    const { key } = await rotate({ grace: '0s' });
    const page =
      'query ($after: String) { auditLog(first: 2, after: $after, action: null) { edges { node { number actor { kind name } action keyName changes { field before after } } } pageInfo { hasNextPage endCursor } } }';
    type Entry = { number: number; changes: { field: string; before: string; after: string }[] };
    type Page = { edges: { node: Entry }[]; pageInfo: { hasNextPage: boolean; endCursor: string } };
    const first = (await ask(admin, page)).data!['auditLog'] as Page;
    const { changes, ...entry } = first.edges[0]!.node;
    assert.deepEqual(entry, { number: 3, actor: { kind: 'KEY', name: 'Admin' }, action: 'ROTATE', keyName: 'CI' });
    const prefixes = { field: 'prefix', before: `"${old.slice(0, 17)}…"`, after: `"${key!.slice(0, 17)}…"` };
    assert.deepEqual([changes[0], changes[1]!.field, changes[1]!.before], [prefixes, 'rotation', 'null']);
    assert.equal(first.pageInfo.hasNextPage, true);
    const last = (await ask(admin, page, { after: first.pageInfo.endCursor })).data!['auditLog'] as Page;
    assert.deepEqual([last.edges.map(({ node }) => node.number), last.pageInfo.hasNextPage], [[1], false]);
    assert.equal((await ask(key!, '{ auditLog { edges { cursor } } }')).errors![0]!.extensions['code'], 'FORBIDDEN');
    assert.equal(
      (await ask(admin, '{ auditLog(after: "x") { edges { cursor } } }')).errors![0]!.extensions['code'],
      'INPUT_INVALID',
    );
    assert.equal(
      (await ask(admin, '{ auditLog(since: "x") { edges { cursor } } }')).errors![0]!.extensions['code'],
      'INPUT_INVALID',
    );
  });
});
