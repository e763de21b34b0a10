import assert from 'node:assert/strict';
import { describeOnEach } from '../support/dialects.ts';
import { createPrincipal } from '../support/keys.ts';
import { collectingLog } from '../support/log.ts';
import { query, startTestService, type TestService } from '../support/server.ts';

describeOnEach('the life of a key, over GraphQL', () => {
  let test: TestService;
  let secret: string;
  const { log, lines } = collectingLog();
  beforeEach(async () => {
    test = await startTestService({ log });
    ({ secret } = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] }));
  });
  afterEach(() => test.stop());
  const ask = async (document: string, variables?: Record<string, unknown>) =>
    (await query(test.url, secret, document, variables)).body;
  const create = async (name: string, expiresAt: unknown = null) => {
    const document =
      'mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { key apiKey { id status expiresAt } } }';
    return ask(document, { input: { name, roles: ['GUEST'], expiresAt } });
  };
  type Created = { key: string; apiKey: { id: string; status: string; expiresAt: string | null } };

  it('expires at the requested instant: refused from then on, and still listed', async () => {
    const { key, apiKey } = (await create('Short', '2030-01-01T02:00:00+01:00')).data!['createApiKey'] as Created;
    assert.deepEqual([apiKey.status, apiKey.expiresAt], ['ACTIVE', '2030-01-01T01:00:00.000Z']);
    test.time.now = Date.UTC(2030, 0, 1, 1) - 1;
    assert.equal((await query(test.url, key, '{ online }')).status, 200);
    test.time.now += 1;
    const refused = await query(test.url, key, '{ online }');
    const unknown = await query(test.url, 'nonsense', '{ online }');
    assert.deepEqual(
      [refused.status, refused.body, refused.headers.get('www-authenticate')],
      [401, unknown.body, unknown.headers.get('www-authenticate')],
    );
    assert.ok(lines.some(({ fields }) => 'reason' in fields && fields.reason === 'expired'));
    const { data } = await ask('{ apiKeys(status: EXPIRED) { edges { node { name status } } } }');
    assert.deepEqual(data, { apiKeys: { edges: [{ node: { name: 'Short', status: 'EXPIRED' } }] } });
  });

  it('can be given another expiry, or none', async () => {
    const { apiKey } = (await create('Short', '2030-01-02T00:00:00Z')).data!['createApiKey'] as Created;
    const update = (expiresAt: unknown) =>
      ask('mutation ($input: UpdateApiKeyInput!) { updateApiKey(input: $input) { expiresAt } }', {
        input: { id: apiKey.id, expiresAt },
      });
    assert.deepEqual((await update('2031-01-01T00:00:00Z')).data, {
      updateApiKey: { expiresAt: '2031-01-01T00:00:00.000Z' },
    });
    assert.deepEqual((await update(null)).data, { updateApiKey: { expiresAt: null } });
    for (const [wrong, code] of [
      ['2029-01-01T00:00:00Z', 'EXPIRY_INVALID'],
      ['2099-01-01T00:00:00Z', 'EXPIRY_INVALID'],
      ['tomorrow', 'INPUT_INVALID'],
      ['2030-02-30T00:00:00Z', 'INPUT_INVALID'],
      [5, 'INPUT_INVALID'],
    ] as const)
      assert.equal((await update(wrong)).errors![0]!.extensions['code'], code, String(wrong));
  });

  it('can be disabled, is refused then, and can be enabled again', async () => {
    const { key, apiKey } = (await create('Switched')).data!['createApiKey'] as Created;
    const set = (enabled: boolean) =>
      ask('mutation ($id: ID!, $enabled: Boolean!) { setApiKeyEnabled(id: $id, enabled: $enabled) { status } }', {
        id: apiKey.id,
        enabled,
      });
    assert.deepEqual((await set(false)).data, { setApiKeyEnabled: { status: 'DISABLED' } });
    assert.equal((await query(test.url, key, '{ online }')).status, 401);
    assert.deepEqual((await ask('{ apiKeys(roles: [GUEST], status: DISABLED) { edges { node { name } } } }')).data, {
      apiKeys: { edges: [{ node: { name: 'Switched' } }] },
    });
    assert.deepEqual((await set(true)).data, { setApiKeyEnabled: { status: 'ACTIVE' } });
    assert.equal((await query(test.url, key, '{ online }')).status, 200);
  });
});
