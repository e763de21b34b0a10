import assert from 'node:assert/strict';
import { defaultConfig } from '../../src/config/default-config.ts';
import { requestCheck } from '../../src/http/request-check.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import {
  agree,
  APP,
  authorizeUrl,
  CALLBACK,
  exchange,
  newPkce,
  openPage,
  postJson,
} from '../features/consent/support/consent.ts';
import { describeOnEach } from '../support/dialects.ts';
import { createPrincipal } from '../support/keys.ts';
import { collectingLog } from '../support/log.ts';
import { query, startTestService, type TestService } from '../support/server.ts';

const OWN = 'https://keys.example.org';
const SITE = 'grafana.example.org';
/** The headers of a browser behind a proxy. */
const BROWSER = { origin: OWN, 'x-forwarded-proto': 'https', 'x-forwarded-host': 'keys.example.org' };

describeOnEach('a key for one address only', () => {
  let test: TestService;
  let approver: string;
  const { log, lines } = collectingLog();
  before(async () => {
    const routes = [
      { host: SITE, path: '/api/**', allow: { kind: 'key' as const }, preflightOpen: false },
      { host: SITE, path: '/other', allow: { kind: 'key' as const }, preflightOpen: false },
    ];
    const app = { clients: [APP], publicUrl: OWN, config: { ...defaultConfig(), routes }, console: true };
    test = await startTestService({ consent: 'both', log, app });
    ({ secret: approver } = await createPrincipal(test.keys, { name: 'Anna', roles: ['ADMIN'] }));
  });
  after(() => test.stop());
  beforeEach(() => (test.time.now += 60_000));

  const keyFor = async (
    resource: string,
    scope = 'role:GUEST API_KEY:READ_ANY API_KEY:CREATE_OWN API_KEY:DELETE_OWN',
  ) => {
    const { verifier, challenge } = newPkce();
    const { fields } = await openPage(authorizeUrl(test.url, { scope, resource, code_challenge: challenge }));
    const { headers } = await agree(test.url, fields, approver, BROWSER);
    const code = new URL(headers.get('location')!).searchParams.get('code')!;
    const { body } = await exchange(test.url, code, verifier, { resource });
    return body['access_token'] as string;
  };
  const graphql = async (key: string) => (await query(test.url, key, '{ online }')).status;
  const introspect = (key: string, token: string) =>
    postJson(`${test.url}/introspect`, { token }, { authorization: `Bearer ${key}` });
  const ask = async (key: string, target: string, more: Record<string, string> = {}) => {
    const headers = {
      authorization: `Bearer ${key}`,
      'x-forwarded-method': 'GET',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': SITE,
      'x-forwarded-uri': target,
      'x-forwarded-for': '203.0.113.7',
      ...more,
    };
    return fetch(`${test.url}/auth/traefik`, { headers });
  };
  const asked = async (key: string, target: string) => (await ask(key, target)).status;

  it('is valid there and beneath it, at each door', async () => {
    const [service, endpoint, site] = [
      await keyFor(`${OWN}/`),
      await keyFor(`${OWN}/graphql`),
      await keyFor(`https://${SITE}/api`),
    ];
    assert.deepEqual([await graphql(service), (await introspect(service, endpoint)).status], [200, 200]);
    assert.deepEqual([await graphql(endpoint), (await introspect(endpoint, service)).status], [200, 401]);
    assert.deepEqual([await graphql(site), (await introspect(site, service)).status], [401, 401]);
    assert.deepEqual([await asked(site, '/api'), await asked(site, '/api/x?y')], [200, 200]);
    for (const target of ['/other', '/apix']) assert.notEqual(await asked(site, target), 200, target);
    assert.deepEqual([await asked(service, '/api/x'), await asked(endpoint, '/api/x')], [401, 401]);
    assert.equal((await introspect(service, site)).body['aud'], `https://${SITE}/api`);
    assert.equal((await ask(site, '/api/x', { 'x-forwarded-host': 'evil.example' })).status, 403);
  });

  it('is refused like one that is not valid, which is logged', async () => {
    const key = await keyFor('https://mcp.example.org/mcp');
    lines.length = 0;
    const { status, headers, body } = await query(test.url, key, '{ online }');
    assert.deepEqual([status, body], [401, (await query(test.url, 'x', '{ online }')).body]);
    assert.match(headers.get('www-authenticate')!, /error="invalid_token"/);
    assert.ok(lines.some(({ fields }) => (fields as { reason?: string }).reason === 'audience'));
    await test.keys.finishActivity();
    const refused = await test.keys.audit.read({ first: 20 }, OPERATOR);
    assert.ok(refused.some(({ action, after }) => action === 'REFUSE' && after?.['reason'] === 'audience'));
  });

  it('is refused by a program that does not name the service it guards, or guards another', async () => {
    const secret = await keyFor('https://mcp.example.org/mcp');
    const check = requestCheck(test.keys);
    assert.equal((await check({ secret })).ok, false);
    assert.equal((await check({ secret }, { audience: 'https://mcp.example.org' })).ok, false);
    assert.equal((await check({ secret }, { audience: 'https://mcp.example.org/mcp' })).ok, true);
    assert.equal((await check({ secret }, { audience: 'https://MCP.example.org:443/mcp/x' })).ok, true);
    await assert.rejects(check({ secret }, { audience: 'mcp.example.org' }), /"audience" is not an address/);
  });

  it('creates no keys for more, also not in its own place', async () => {
    const key = await keyFor(`${OWN}/graphql`);
    const { body: me } = await query(test.url, key, '{ me { name audience } }');
    const { name, audience } = me.data!['me'] as { name: string; audience: string };
    assert.equal(audience, `${OWN}/graphql`);
    const create = async (input: object) => {
      const { body } = await query(
        test.url,
        key,
        'mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { key } }',
        { input },
      );
      return (body.data?.['createApiKey'] as { key: string } | null)?.key;
    };
    const child = await create({ name: `Child ${test.time.now}`, roles: ['GUEST'] });
    assert.deepEqual([await graphql(child!), (await requestCheck(test.keys)({ secret: child })).ok], [200, false]);
    const again = await create({ name, roles: ['GUEST'], overwrite: true });
    assert.deepEqual([await graphql(again!), (await requestCheck(test.keys)({ secret: again })).ok], [200, false]);
  });

  it('agrees to nothing, and signs in nowhere', async () => {
    const key = await keyFor(`${OWN}/graphql`);
    const { fields } = await openPage(authorizeUrl(test.url));
    const { status, text } = await agree(test.url, fields, key, BROWSER);
    assert.deepEqual([status, text.includes('The API key is not valid.')], [403, true]);
  });

  it('cannot be for an invalid address', async () => {
    for (const resource of [
      'mcp',
      'ftp://a.example',
      'https://a.example/#x',
      'https://a.example/?x',
      'https://u@a.example',
    ]) {
      const reply = await fetch(authorizeUrl(test.url, { resource }), { redirect: 'manual' });
      const location = new URL(reply.headers.get('location')!);
      assert.equal(location.href.split('?')[0], CALLBACK);
      assert.equal(location.searchParams.get('error'), 'invalid_target', resource);
      test.time.now += 10_000;
    }
  });

  it('may use the permissions for getting there, if the application does not name any', async () => {
    const { text } = await openPage(authorizeUrl(test.url, { scope: '', resource: `https://${SITE}/api/x` }));
    assert.match(text, /value="ME:READ_OWN"/);
    const reply = await fetch(authorizeUrl(test.url, { scope: '', resource: 'https://a.example' }), {
      redirect: 'manual',
    });
    assert.equal(new URL(reply.headers.get('location')!).searchParams.get('error'), 'invalid_scope');
  });

  it('says to applications where keys for a service behind a proxy come from', async () => {
    const refused = await ask('x', '/api/x');
    const metadata = `https://${SITE}/.well-known/oauth-protected-resource/api`;
    assert.match(refused.headers.get('www-authenticate')!, new RegExp(`resource_metadata="${metadata}"`));
    const headers = { 'x-forwarded-proto': 'https', 'x-forwarded-host': SITE };
    const reply = await fetch(`${test.url}/.well-known/oauth-protected-resource/api`, { headers });
    assert.deepEqual(await reply.json(), {
      resource: `https://${SITE}/api`,
      authorization_servers: [OWN],
      bearer_methods_supported: ['header'],
      scopes_supported: ['ME:READ_OWN'],
    });
  });
});
