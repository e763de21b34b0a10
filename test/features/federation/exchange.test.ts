import assert from 'node:assert/strict';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { postJson } from '../consent/support/consent.ts';
import { createPrincipal, principalOf } from '../../support/keys.ts';
import { query, startTestService, type TestService } from '../../support/server.ts';

const GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange';
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';

describe('the exchange of a key for a narrower one', () => {
  let test: TestService;
  let secret: string;
  let id: string;
  before(async () => {
    test = await startTestService();
  });
  after(() => test.stop());
  beforeEach(async () => {
    test.time.now += 3_600_000;
    const grants = { roles: ['VIEWER'], permissions: ['API_KEY:CREATE_OWN', 'API_KEY:DELETE_OWN'] };
    const parent = await createPrincipal(test.keys, { name: `Agent ${test.time.now}`, ...grants, expiresIn: '2d' });
    ({ secret } = parent);
    ({ id } = parent.principal.apiKey);
  });
  const exchange = async (form: Record<string, string> = {}) =>
    postJson(`${test.url}/oauth/token`, {
      grant_type: GRANT,
      subject_token: secret,
      subject_token_type: ACCESS_TOKEN,
      ...form,
    });
  const given = async (form: Record<string, string> = {}) => {
    const { body } = await exchange(form);
    return body['access_token'] as string;
  };
  const refused = async (form: Record<string, string>) => {
    const { status, body } = await exchange(form);
    return [status, body['error']];
  };
  const statusOf = async (key: string) => (await query(test.url, key, '{ online }')).status;

  it('gives a child key with the requested grants, for ten minutes, that ends with its parent key', async () => {
    const { status, body, headers } = await exchange({ scope: 'DOCKER:READ_ANY role:GUEST' });
    const key = body['access_token'] as string;
    assert.deepEqual(
      [status, headers.get('cache-control'), { ...body, access_token: '' }],
      [
        200,
        'no-store',
        {
          access_token: '',
          issued_token_type: ACCESS_TOKEN,
          token_type: 'Bearer',
          expires_in: 600,
          scope: 'role:GUEST DOCKER:READ_ANY',
        },
      ],
    );
    const { apiKey } = await principalOf(test.keys, key);
    assert.equal(apiKey.createdBy, id);
    assert.match(apiKey.name, /^Agent \d+ [0-9A-Za-z]{8}$/);
    assert.equal(await statusOf(key), 200);
    await test.keys.setEnabled(id, false, OPERATOR);
    assert.equal(await statusOf(key), 401);
    await test.keys.setEnabled(id, true, OPERATOR);
    assert.equal(await statusOf(key), 200);
    await test.keys.delete([id], OPERATOR);
    assert.equal(await statusOf(key), 401);
  });

  it('gives what the key itself may use where no scope is named, and less where its own parent was narrowed', async () => {
    const whole = await exchange();
    assert.equal(whole.body['scope'], 'role:VIEWER API_KEY:CREATE_OWN API_KEY:DELETE_OWN');
    secret = whole.body['access_token'] as string;
    await test.keys.update(id, { roles: ['GUEST'] }, OPERATOR);
    assert.equal((await exchange()).body['scope'], 'API_KEY:CREATE_OWN API_KEY:DELETE_OWN');
    await test.keys.update(id, { permissions: ['DOCKER:READ_ANY'] }, OPERATOR);
    assert.deepEqual(await refused({}), [400, 'invalid_request'], 'there is nothing left to give');
  });

  it('ends it when asked, within a day, and never after its parent key', async () => {
    assert.equal((await exchange({ expires_in: '90' })).body['expires_in'], 90);
    assert.equal((await exchange({ expires_in: '86400' })).body['expires_in'], 86_400);
    for (const wrong of ['0', '-5', '1.5', '10m', '86401', '999999999'])
      assert.deepEqual(await refused({ expires_in: wrong }), [400, 'invalid_request'], wrong);
    await test.keys.update(id, { expiresIn: '5m' }, OPERATOR);
    assert.equal((await exchange()).body['expires_in'], 300);
    assert.deepEqual(await refused({ expires_in: '600' }), [400, 'invalid_scope']);
  });

  it('never gives more than the key holds, and nothing to one that may create no keys', async () => {
    for (const scope of ['role:ADMIN', 'DOCKER:UPDATE_ANY', 'role:VIEWER DOCKER:UPDATE_ANY', 'role:NOBODY', 'x'])
      assert.deepEqual(await refused({ scope }), [400, 'invalid_scope'], scope);
    const narrow = await given({ scope: 'role:VIEWER' });
    assert.deepEqual(await refused({ subject_token: narrow, scope: 'role:GUEST' }), [400, 'invalid_scope']);
  });

  it('makes chains no longer than those of keys created one by one', async () => {
    for (let length = 1; length < 16; length += 1) secret = await given();
    assert.deepEqual(await refused({}), [400, 'invalid_request']);
  });

  it('takes a key only from where it may be used, within its limits, and by its newest secret', async () => {
    const previous = secret;
    const { key } = await test.keys.rotate(id, { grace: '1h' }, OPERATOR);
    assert.deepEqual(await refused({ subject_token: previous }), [400, 'invalid_scope']);
    secret = key;
    await test.keys.update(id, { limits: ['2/h'] }, OPERATOR);
    const child = await given();
    assert.equal(await statusOf(child), 200, 'requests of the child key count for its parent key');
    const limited = await exchange();
    assert.deepEqual([limited.status, limited.body['error']], [429, 'temporarily_unavailable']);
    assert.ok(Number(limited.headers.get('retry-after')) > 0);
    await test.keys.update(id, { limits: [], allowFrom: ['192.0.2.0/24'] }, OPERATOR);
    assert.deepEqual(await refused({}), [400, 'invalid_request']);
    assert.equal(await statusOf(child), 403);
  });

  it('refuses invalid keys and unknown requests', async () => {
    for (const [form, error] of [
      [{ subject_token: 'x' }, 'invalid_request'],
      [{ subject_token: `${secret.slice(0, -1)}${secret.endsWith('0') ? 1 : 0}` }, 'invalid_request'],
      [{ subject_token: '' }, 'invalid_request'],
      [{ subject_token_type: 'urn:ietf:params:oauth:token-type:saml2' }, 'invalid_request'],
      [{ requested_token_type: 'urn:ietf:params:oauth:token-type:jwt' }, 'invalid_request'],
      [{ actor_token: secret }, 'invalid_request'],
      [{ resource: 'other' }, 'invalid_target'],
      [{ audience: 'other' }, 'invalid_target'],
      [{ client_id: 'nobody' }, 'invalid_client'],
      [{ name: 'a/b' }, 'invalid_request'],
    ] as const)
      assert.deepEqual(await refused(form), [400, error], JSON.stringify(form));
    assert.equal((await exchange({ resource: test.url, audience: test.url })).status, 200);
    assert.equal((await exchange({ requested_token_type: ACCESS_TOKEN })).status, 200);
  });

  it('gives a key for one address only, also to the holder of such a key, but not for another address', async () => {
    const resource = 'https://mcp.example.org/files';
    const agent = await given({ resource });
    assert.equal((await principalOf(test.keys, agent)).apiKey.audience, resource);
    assert.equal(await statusOf(agent), 401);
    const narrower = await given({ subject_token: agent, resource: `${resource}/mcp` });
    assert.equal((await principalOf(test.keys, narrower)).apiKey.audience, `${resource}/mcp`);
    const same = await given({ subject_token: agent });
    assert.deepEqual((await principalOf(test.keys, same)).restrictions!.audiences, [resource]);
    assert.deepEqual(await refused({ resource, audience: 'https://b.example.org' }), [400, 'invalid_target']);
    for (const other of ['https://mcp.example.org', `${resource}2`, test.url])
      assert.deepEqual(await refused({ subject_token: agent, resource: other }), [400, 'invalid_target']);
  });

  it('names it as requested, unless the name is taken, and lets its holder end it', async () => {
    const name = `Sub agent ${test.time.now}`;
    const key = await given({ name });
    assert.equal((await principalOf(test.keys, key)).apiKey.name, name);
    assert.deepEqual(await refused({ name }), [400, 'invalid_request']);
    const revoke = (token: string) => postJson(`${test.url}/oauth/revoke`, { client_id: 'svc-api', token });
    assert.equal((await revoke(key)).status, 200);
    assert.equal(await statusOf(key), 401);
    assert.equal((await revoke(secret)).body['error'], 'unsupported_token_type', 'its parent key was not given so');
  });

  it('is offered for all scopes that applications may request', async () => {
    const off = await startTestService({ consent: 'off' });
    const metadata = await fetch(`${off.url}/.well-known/oauth-authorization-server`);
    const { grant_types_supported: grants } = (await metadata.json()) as Record<string, unknown>;
    assert.deepEqual(grants, [GRANT]);
    const { status, body } = await postJson(`${off.url}/oauth/token`, { grant_type: 'password' });
    assert.deepEqual([status, body['error']], [400, 'unsupported_grant_type']);
    await off.stop();
  });

  it('is in the audit log as a creation by the parent key', async () => {
    const { apiKey } = await principalOf(test.keys, await given());
    const [entry] = await test.keys.audit.read({ apiKey: apiKey.id, action: 'CREATE' }, OPERATOR);
    assert.equal(entry!.actor.id, id);
  });
});
