import assert from 'node:assert/strict';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { NO_POLICY as NONE } from '../../src/keys/permissions/policy.ts';
import { createPrincipal } from '../support/keys.ts';
import { query, startTestService, type TestService } from '../support/server.ts';
import { APP, askDevice, pollDevice, postForm } from '../features/consent/support/consent.ts';

const POLICY = {
  maxLifetime: '90d',
  requireExpiry: true,
  grantableByKeys: ['VIEWER', 'DOCKER:READ_ANY'],
  maxKeysPerCreator: 3,
};

describe('the policy over HTTP', () => {
  let test: TestService;
  let admin: string;
  const errorOf = async (document: string, secret = admin) => {
    const { body } = await query(test.url, secret, document);
    const [error] = body.errors ?? [];
    return error ? `${String(error.extensions['code'])}: ${error.message}` : undefined;
  };
  /** Approves on the page with a key. */
  const agree = (userCode: string, key: string, end: string, scope: string) =>
    postForm(`${test.url}/device`, { user_code: userCode, key, decision: 'approve', expires_in: end, scope });

  beforeEach(async () => {
    test = await startTestService({ policy: POLICY, consent: 'both', app: { clients: [APP] } });
    const input = { name: 'Admin', roles: ['ADMIN'], expiresIn: '90d' };
    admin = (await createPrincipal(test.keys, input)).secret;
  });
  afterEach(() => test.stop());

  it('refuses violations with a code, the rule and its value, and lets all else pass', async () => {
    const create = (input: string) => errorOf(`mutation { createApiKey(input: { ${input} }) { key } }`);
    const lower = 'name: "Lower", roles: [VIEWER], expiresIn: "1d"';
    assert.equal(await create(lower), undefined);
    assert.match(
      (await create('name: "New", roles: [ADMIN]'))!,
      /^POLICY_VIOLATED: .*grantableByKeys.*let keys grant ADMIN/,
    );
    const late = (await create('name: "New", roles: [VIEWER], expiresIn: "91d"'))!;
    assert.match(late, /^FORBIDDEN: .*this key expires at/);
    const { apiKey: key } = await test.keys.create({ name: 'Other', roles: ['VIEWER'], expiresIn: '1d' }, OPERATOR);
    const update = (fields: string) =>
      errorOf(`mutation { updateApiKey(input: { id: "${key.id}", ${fields} }) { id } }`);
    assert.match((await update('roles: [CONNECT]'))!, /^POLICY_VIOLATED: .*let keys grant CONNECT/);
    assert.equal(await update('description: "Fine"'), undefined);
    const apply =
      'mutation { applyApiKeys(input: { keys: [{ name: "New", roles: [ADMIN], expiresAt: "2030-01-02T00:00:00Z" }] }) { unchanged } }';
    assert.match((await errorOf(apply))!, /^POLICY_VIOLATED: .*let keys grant ADMIN/);
    for (const name of ['Second', 'Third']) assert.equal(await create(lower.replace('Lower', name)), undefined);
    assert.match((await create(lower.replace('Lower', 'Fourth')))!, /^POLICY_VIOLATED: .*maxKeysPerCreator: 3/);
    assert.match(
      (await create('name: "Lower", roles: [ADMIN], overwrite: true'))!,
      /^POLICY_VIOLATED: .*let keys grant ADMIN/,
    );
  });

  it('lets keys be disabled and rotated, but not enabled in violation of it', async () => {
    const { apiKey: key } = await test.keys.create({ name: 'Strong', roles: ['ADMIN'], expiresIn: '1d' }, OPERATOR);
    const enable = (enabled: boolean) =>
      errorOf(`mutation { setApiKeyEnabled(id: "${key.id}", enabled: ${enabled}) { id } }`);
    const change = (document: string) => errorOf(`mutation { ${document} }`);
    assert.equal(await change(`rotateApiKey(input: { id: "${key.id}", grace: "1h" }) { key }`), undefined);
    assert.equal(await change(`rollBackApiKeyRotation(id: "${key.id}") { id }`), undefined);
    assert.equal(await enable(false), undefined);
    assert.match((await enable(true))!, /^POLICY_VIOLATED: .*let keys grant ADMIN/);
    assert.equal(await change(`deleteApiKeys(ids: ["${key.id}"]) { deleted }`), undefined);
  });

  it('holds for applications: at the approval, and when the key is fetched', async () => {
    const asked = await askDevice(test.url, { scope: 'DISK:READ_ANY DOCKER:READ_ANY' });
    const more = await agree(asked.user_code, admin, '1d', 'DISK:UPDATE_ANY');
    assert.equal(more.status, 400);
    const other = await askDevice(test.url, { scope: 'DISK:UPDATE_ANY' });
    const refused = await agree(other.user_code, admin, '1d', 'DISK:UPDATE_ANY');
    assert.equal(refused.status, 403);
    assert.match(refused.text, /not let keys grant DISK:UPDATE_ANY/);
    assert.equal((await agree(asked.user_code, admin, '1d', 'DOCKER:READ_ANY')).status, 200);
    for (const name of ['One', 'Two', 'Three']) {
      const input = `{ name: "${name}", roles: [VIEWER], expiresIn: "1d" }`;
      assert.equal(await errorOf(`mutation { createApiKey(input: ${input}) { key } }`), undefined);
    }
    const { body } = await pollDevice(test.url, asked.device_code);
    assert.equal(body['error'], 'access_denied');
  });

  it('requires an expiry if the approval sets none', async () => {
    const { secret } = await createPrincipal(test.keys.withCatalog({ ...test.keys.catalog, policy: NONE }), {
      name: 'Earlier',
      roles: ['ADMIN'],
    });
    const asked = await askDevice(test.url);
    const endless = await agree(asked.user_code, secret, '', 'DOCKER:READ_ANY');
    assert.deepEqual([endless.status, /would never expire/.test(endless.text)], [403, true]);
    assert.equal((await agree(asked.user_code, secret, '90d', 'DOCKER:READ_ANY')).status, 200);
  });
});
