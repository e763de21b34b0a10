import assert from 'node:assert/strict';
import { defaultConfig } from '../../../../src/config/default-config.ts';
import { OPERATOR } from '../../../../src/keys/authorization/principal.ts';
import { tempStore } from '../../../support/temp.ts';
import { openKeys } from '../../../../src/index.ts';
import { createCatalog } from '../../../../src/keys/permissions/catalog.ts';
import {
  agree,
  APP,
  askDevice,
  authorizeUrl,
  CALLBACK,
  exchange,
  newPkce,
  openPage,
  pollDevice,
  postForm,
  postJson,
  startConsentService,
} from '../support/consent.ts';
import { createPrincipal } from '../../../support/keys.ts';
import { collectingLog } from '../../../support/log.ts';
import { startServer, startTestService, type TestService } from '../../../support/server.ts';
import { Consent } from '../../../../src/features/consent/consent.ts';

describe('the endpoints for applications', () => {
  let test: TestService;
  before(async () => {
    test = await startConsentService();
  });
  after(() => test.stop());
  beforeEach(() => void (test.time.now += 600_000));
  const metadata = async (url = test.url, headers: Record<string, string> = {}) =>
    (await (await fetch(`${url}/.well-known/oauth-authorization-server`, { headers })).json()) as Record<
      string,
      unknown
    >;

  it('are those in the metadata', async () => {
    assert.deepEqual(await metadata(), {
      issuer: test.url,
      authorization_endpoint: `${test.url}/oauth/authorize`,
      token_endpoint: `${test.url}/oauth/token`,
      device_authorization_endpoint: `${test.url}/oauth/device_authorization`,
      revocation_endpoint: `${test.url}/oauth/revoke`,
      response_types_supported: ['code'],
      response_modes_supported: ['query'],
      grant_types_supported: [
        'authorization_code',
        'urn:ietf:params:oauth:grant-type:device_code',
        'urn:ietf:params:oauth:grant-type:token-exchange',
      ],
      code_challenge_methods_supported: ['S256'],
      token_endpoint_auth_methods_supported: ['none'],
      revocation_endpoint_auth_methods_supported: ['none'],
      authorization_response_iss_parameter_supported: true,
    });
  });

  it('name the host of a client that is not known, and what lets it in, on the page and in the log', async () => {
    for (const clientDocuments of ['off', ['claude.ai']] as const) {
      const { log, lines } = collectingLog();
      const config = { ...defaultConfig(), consent: 'both', clientDocuments } as const;
      const server = await startServer(test.keys, { clients: [APP], config, log });
      for (const [host, path] of [
        ['claude.com', 'oauth/mcp-oauth-client-metadata'],
        ['vscode.dev', 'oauth/client-metadata.json'],
      ] as const) {
        const page = await openPage(authorizeUrl(server.url, { client_id: `https://${host}/${path}` }));
        const line = `clients: { metadata-documents: [${host}] }`;
        assert.deepEqual([page.status, page.text.includes(line)], [400, true]);
        assert.ok(JSON.stringify(lines).includes(line));
      }
      const other = await openPage(authorizeUrl(server.url, { client_id: 'nobody' }));
      assert.match(other.text, /This client_id does not exist/);
      await server.stop();
    }
  });

  it('take a loopback redirect with any port, and with no other spelling', async () => {
    const client = { id: 'local', name: 'Local', redirects: ['http://localhost/callback'] };
    const server = await startServer(test.keys, { clients: [client] });
    const open = async (redirect: string) =>
      openPage(authorizeUrl(server.url, { client_id: client.id, redirect_uri: redirect }));
    assert.equal((await open('http://localhost:33418/callback')).status, 200);
    for (const redirect of [
      'http://127.0.0.1:33418/callback',
      'http://[::1]:33418/callback',
      'http://localhost:33418/callback/',
    ]) {
      const { status, text } = await open(redirect);
      assert.deepEqual([status, text.includes(redirect)], [400, true]);
    }
    await server.stop();
  });

  it('are named after the origin that is configured, or that a trusted proxy was asked for', async () => {
    const forwarded = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'keys.example.org' };
    assert.equal((await metadata(test.url, forwarded))['issuer'], 'https://keys.example.org');
    for (const host of ['a, b', 'a/b', 'a b@c'])
      assert.equal((await metadata(test.url, { 'x-forwarded-host': host }))['issuer'], test.url);
    const strict = await startServer(test.keys, { trust: [] });
    assert.equal((await metadata(strict.url, forwarded))['issuer'], strict.url);
    await strict.stop();
    const named = await startServer(test.keys, { publicUrl: 'https://keys.example.com' });
    assert.equal((await metadata(named.url, forwarded))['token_endpoint'], 'https://keys.example.com/oauth/token');
    await named.stop();
  });

  it('answer errors in the form of RFC 6749, in the characters that it allows', async () => {
    const wrong: [path: string, form: Record<string, string>, status: number, error: string][] = [
      ['device_authorization', { scope: 'DOCKER:READ_ANY' }, 400, 'invalid_request'],
      ['device_authorization', { client_id: 'nobody', scope: 'DOCKER:READ_ANY' }, 400, 'invalid_client'],
      ['device_authorization', { client_id: APP.id }, 400, 'invalid_scope'],
      ['device_authorization', { client_id: APP.id, scope: 'DOCKER:READ "ü\\' }, 400, 'invalid_scope'],
      ['device_authorization', { client_id: APP.id, scope: 'role:ROOT' }, 400, 'invalid_scope'],
      [
        'device_authorization',
        { client_id: APP.id, scope: 'DOCKER:READ_ANY', key_expires_in: 'soon' },
        400,
        'invalid_request',
      ],
      [
        'device_authorization',
        { client_id: APP.id, scope: 'DOCKER:READ_ANY', client_secret: 'x' },
        401,
        'invalid_client',
      ],
      ['token', { client_id: APP.id }, 400, 'invalid_request'],
      ['token', { client_id: APP.id, grant_type: 'password' }, 400, 'unsupported_grant_type'],
      ['token', { client_id: APP.id, grant_type: 'authorization_code', code: 'x' }, 400, 'invalid_request'],
      ['token', { client_id: 'nobody', grant_type: 'authorization_code' }, 400, 'invalid_client'],
      ['revoke', { client_id: APP.id }, 400, 'invalid_request'],
      ['revoke', { token: 'x' }, 400, 'invalid_request'],
      ['revoke', { client_id: 'nobody', token: 'x' }, 400, 'invalid_client'],
      ['revoke', { client_id: APP.id, token: 'x', client_secret: 'x' }, 401, 'invalid_client'],
      ['revoke', { client_id: APP.id, token: 'x', created_keys: 'keep' }, 400, 'invalid_request'],
    ];
    for (const [path, form, status, error] of wrong) {
      const reply = await postJson(`${test.url}/oauth/${path}`, form);
      assert.deepEqual([reply.status, reply.body['error']], [status, error], JSON.stringify(form));
      assert.match(reply.body['error_description'] as string, /^[\x20\x21\x23-\x5b\x5d-\x7e]+$/);
      assert.equal(reply.headers.get('cache-control'), 'no-store');
      test.time.now += 6000;
    }
    test.time.now += 60_000;
    const twice = await postForm(`${test.url}/oauth/token`, [
      ['grant_type', 'authorization_code'],
      ['client_id', APP.id],
      ['client_id', APP.id],
    ]);
    assert.match(twice.text, /"invalid_request".*client_id is repeated/);
    const json = await fetch(`${test.url}/oauth/token`, {
      method: 'POST',
      body: '{}',
      headers: { 'content-type': 'application/json' },
    });
    assert.equal(json.status, 415);
    const get = await fetch(`${test.url}/oauth/token`);
    assert.deepEqual([get.status, get.headers.get('allow')], [405, 'POST']);
    const basic = await postJson(`${test.url}/oauth/token`, {}, { authorization: 'Basic eDp5' });
    assert.deepEqual([basic.status, basic.headers.get('www-authenticate')], [401, 'Basic realm="svc-api"']);
  });

  it('show people the error if their application cannot get it', async () => {
    const { status, text, headers } = await openPage(authorizeUrl(test.url, { client_id: '' }));
    assert.deepEqual([status, headers.get('content-type')], [400, 'text/html; charset=utf-8']);
    assert.match(text, /The parameter client_id is missing/);
    for (const [parameters, error] of [
      [{ response_type: 'token' }, 'unsupported_response_type'],
      [{ response_mode: 'fragment' }, 'invalid_request'],
      [{ scope: 'openid' }, 'invalid_scope'],
      [{ key_expires_in: 'x' }, 'invalid_request'],
    ] as const) {
      const reply = await openPage(authorizeUrl(test.url, parameters));
      assert.equal(new URL(reply.headers.get('location')!).searchParams.get('error'), error);
    }
  });

  it('let a person narrow the grants, and set the expiry', async () => {
    const fields = { name: 'Anna', roles: ['VIEWER'], permissions: ['API_KEY:CREATE_OWN'], expiresIn: '30d' };
    const { secret: key } = await createPrincipal(test.keys, fields);
    const { verifier, challenge } = newPkce();
    const scope = 'role:GUEST DOCKER:READ_ANY INFO:READ_ANY';
    const address = authorizeUrl(test.url, { code_challenge: challenge, scope, key_expires_in: '90d' });
    const page = await openPage(address);
    assert.match(page.text, /<h1>Grafana sync asks for an API key<\/h1>/);
    assert.match(page.text, /<code[^>]*>role:GUEST<\/code><span[^>]*> Limited access/);
    assert.match(page.text, /Redirects to[^]*http:\/\/127\.0\.0\.1:54321\/done/);
    assert.match(page.text, /127\.0\.0\.1<\/dd>/);

    const late = await agree(test.url, page.fields, key);
    assert.equal(late.status, 403);
    assert.match(late.text, /role="alert">A key cannot grant more than it holds: this key expires at/);
    assert.equal((late.text.match(/ checked/g) ?? []).length, 3, 'what was chosen stays chosen');
    assert.ok(!late.text.includes(key));

    const narrowed = page.fields
      .filter(([, value]) => value !== 'INFO:READ_ANY' && value !== 'role:GUEST')
      .map(([name, value]): [string, string] => [name, name === 'expires_in' ? '1h' : value]);
    const none = narrowed.filter(([name]) => name !== 'scope');
    assert.match((await agree(test.url, none, key)).text, /at least one role or permission/);
    const { headers } = await agree(test.url, narrowed, key);
    const code = new URL(headers.get('location')!).searchParams.get('code')!;
    const { body } = await exchange(test.url, code, verifier);
    assert.deepEqual([body['scope'], body['expires_in']], ['DOCKER:READ_ANY', 3600]);
  });

  it('end a key together with the approving key, if no expiry was set', async () => {
    const fields = { name: 'Bert', roles: ['ADMIN'], expiresIn: '2h' };
    const { secret: key } = await createPrincipal(test.keys, fields);
    const device = await askDevice(test.url, { key_expires_in: '30m' });
    const page = await openPage(`${test.url}/device?user_code=${device.user_code}`);
    const cleared = page.fields.map(([name, value]): [string, string] => [name, name === 'expires_in' ? '' : value]);
    await agree(test.url, cleared, key);
    assert.equal((await pollDevice(test.url, device.device_code)).body['expires_in'], 7200);
  });

  it('ask for the code that an application shows, and explain errors', async () => {
    const asked = await openPage(`${test.url}/device`);
    assert.match(asked.text, /<form method="get" action="device"/);
    const wrong = await openPage(`${test.url}/device?user_code=nonsense`);
    assert.equal(wrong.status, 404);
    assert.match(wrong.text, /role="alert">&quot;nonsense&quot; is not a code/);
    const device = await askDevice(test.url);
    const spelled = device.user_code.toLowerCase().replace('-', ' ');
    assert.equal((await openPage(`${test.url}/device?user_code=${encodeURIComponent(spelled)}`)).status, 200);
    const refused = await postForm(`${test.url}/device`, { user_code: device.user_code, decision: 'deny' });
    assert.deepEqual([refused.status, refused.text.includes('gets no key')], [200, true]);
    assert.equal((await pollDevice(test.url, device.device_code)).body['error'], 'access_denied');
  });

  it('take a double click on the page of a code for one', async () => {
    const { secret: key } = await createPrincipal(test.keys, { name: 'Carl', roles: ['ADMIN'] });
    const device = await askDevice(test.url);
    const { fields } = await openPage(`${test.url}/device?user_code=${device.user_code}`);
    const both = await Promise.all([agree(test.url, fields, key), agree(test.url, fields, key)]);
    for (const { status, text } of both) assert.deepEqual([status, text.includes('gets its key now')], [200, true]);
    assert.equal((await pollDevice(test.url, device.device_code)).status, 200);
    assert.equal((await agree(test.url, fields, key)).status, 409);
  });

  it('give the program itself a key, which needs no registration', async () => {
    const form = { client_id: 'svc-api', scope: 'role:ADMIN' };
    const { body } = await postJson(`${test.url}/oauth/device_authorization`, form);
    const request = await test.keys.feature(Consent).show({ userCode: body['user_code'] as string });
    const { request: approved } = await test.keys.feature(Consent).approve(request, {}, OPERATOR);
    assert.match(approved.approval!.keyName, /^svc api \d{8} [B-Z]{6}$/);
    const page = await openPage(
      authorizeUrl(test.url, { client_id: 'svc-api', redirect_uri: 'http://127.0.0.1:4711/callback' }),
    );
    assert.equal(page.status, 200);
  });

  it('lead a form to where the application is, and nowhere else', async () => {
    const targets: [redirect: string, target: string][] = [
      [CALLBACK, 'http://127.0.0.1:54321'],
      ['https://app.example.org/done', 'https://app.example.org'],
      ['com.example.app:/done', 'com.example.app:'],
    ];
    for (const [redirect, target] of targets) {
      const { headers } = await openPage(authorizeUrl(test.url, { redirect_uri: redirect }));
      assert.match(headers.get('content-security-policy')!, new RegExp(`form-action 'self' ${target};`));
    }
  });

  it('know the clients of svc-api.yaml', async () => {
    const clients = [{ id: 'tv', name: 'TV', redirects: [] }];
    const config = { ...defaultConfig(), clients, publicUrl: 'https://keys.example.org' };
    const server = await startServer(test.keys, { config });
    const form = { client_id: 'tv', scope: 'role:GUEST' };
    const { body } = await postJson(`${server.url}/oauth/device_authorization`, form);
    assert.equal(body['verification_uri'], 'https://keys.example.org/device');
    const page = await openPage(authorizeUrl(server.url, { client_id: 'tv' }));
    assert.equal(page.status, 400, 'it has no redirect');
    await server.stop();
  });

  it('do not start with an invalid client or address', async () => {
    const invalid = { ...APP, redirects: ['http://app.example.org/'] };
    await assert.rejects(
      startServer(test.keys, { clients: [invalid] }),
      /"http:\/\/app\.example\.org\/" is not a redir/,
    );
    for (const publicUrl of ['https://keys.example.org/', 'https://example.org//keys', 'ftp://keys.example.org'])
      await assert.rejects(startServer(test.keys, { publicUrl }), /is not an address of a service/);
  });

  it('answer 503 while the store does not answer', async () => {
    const broken = await startConsentService();
    await broken.store.close();
    const reply = await postJson(`${broken.url}/oauth/device_authorization`, {
      client_id: APP.id,
      scope: 'role:GUEST',
    });
    assert.deepEqual([reply.status, reply.body['error']], [503, 'temporarily_unavailable']);
    const token = `svc_${'A'.repeat(12)}_${'A'.repeat(49)}`;
    for (const secret of [token, 'imported']) {
      const revoked = await postJson(`${broken.url}/oauth/revoke`, { client_id: APP.id, token: secret });
      assert.equal(revoked.status, secret === token ? 200 : 503, 'one with a wrong checksum is none');
    }
    const page = await openPage(authorizeUrl(broken.url));
    assert.equal(new URL(page.headers.get('location')!).searchParams.get('error'), 'temporarily_unavailable');
    assert.equal((await openPage(`${broken.url}/device?user_code=WDJB-MJHT`)).status, 503);
    await broken.stop();
  });
});

describe('the ways of applications to request a key', () => {
  let test: TestService;
  afterEach(() => test.stop());

  for (const [consent, device, code] of [
    [undefined, 'svc-api', undefined],
    ['off', undefined, undefined],
    ['device', APP.id, undefined],
    ['code', undefined, APP.id],
    ['both', APP.id, APP.id],
  ] as const) {
    it(`are as svc-api.yaml says: consent: ${consent ?? 'not said'}`, async () => {
      const clients = consent === undefined ? [] : [APP];
      test = await startTestService({ consent, app: { clients } });
      const metadata = await fetch(`${test.url}/.well-known/oauth-authorization-server`);
      const told = (await metadata.json()) as Record<string, unknown>;
      assert.equal(metadata.status, 200, 'a key can be exchanged in any case');
      assert.deepEqual(
        ['device_authorization_endpoint', 'authorization_endpoint', 'response_types_supported'].map(
          (name) => told[name] !== undefined,
        ),
        [device !== undefined, code !== undefined, code !== undefined],
      );

      const scope = 'DOCKER:READ_ANY';
      const named = (flow: string | undefined) => ({ client_id: flow ?? 'svc-api', scope });
      const asked = await postJson(`${test.url}/oauth/device_authorization`, named(device));
      const page = await openPage(`${test.url}/device`);
      const opened = await openPage(authorizeUrl(test.url, named(code)));
      assert.deepEqual([asked.status, page.status], device === undefined ? [404, 404] : [200, 200]);
      assert.equal(opened.status, code === undefined ? 404 : 200);
      if (device === undefined) {
        assert.equal(asked.body['error'], 'unauthorized_client');
        assert.match(asked.body['error_description'] as string, /'consent' in svc-api\.yaml is (off|code)\.$/);
      }
      if (code === undefined) assert.match(opened.text, /svc-api\.yaml/);
      for (const path of ['/device', '/oauth/authorize'])
        assert.equal(
          (await postForm(test.url + path, { user_code: 'BCDF-GHJK', page: 'x', decision: 'deny' })).status,
          404,
        );

      const grants = told['grant_types_supported'] ?? [];
      for (const [grant, flow] of [
        ['authorization_code', code],
        ['urn:ietf:params:oauth:grant-type:device_code', device],
      ] as const) {
        const form = { client_id: 'svc-api', device_code: 'x', code: 'x', redirect_uri: 'x', code_verifier: 'x' };
        const { status, body } = await postJson(`${test.url}/oauth/token`, { ...form, grant_type: grant });
        const refused = consent === 'off' ? [404, 'unauthorized_client'] : [400, 'unsupported_grant_type'];
        assert.deepEqual([status, body['error']], flow === undefined ? refused : [400, 'invalid_grant']);
        assert.equal((grants as string[]).includes(grant), flow !== undefined);
      }
      const ended = await postJson(`${test.url}/oauth/revoke`, { client_id: 'svc-api', token: 'x' });
      assert.equal(ended.status, 200, 'what was given before can be ended all the same');
    });
  }

  it('are followed while it runs: what waits then is agreed to no more, can be refused, and gets nothing', async () => {
    test = await startTestService({ consent: 'both', app: { clients: [APP] } });
    const agreed = await askDevice(test.url);
    await test.keys
      .feature(Consent)
      .approve(await test.keys.feature(Consent).show({ userCode: agreed.user_code }), {}, OPERATOR);
    const waiting = await askDevice(test.url);
    const off = test.keys.withCatalog(createCatalog({ consent: 'off' }));
    const request = await off.feature(Consent).find({ userCode: waiting.user_code });
    await assert.rejects(off.feature(Consent).approve(request, {}, OPERATOR), {
      code: 'CONSENT_OFF',
      message: 'Applications cannot request keys: "consent" in svc-api.yaml is off.',
    });
    assert.equal((await off.feature(Consent).deny(request, OPERATOR)).status, 'DENIED');
    const later = await startServer(Object.assign(off, { limiter: test.keys.limiter }));
    test.time.now += 10_000;
    const { status, body } = await pollDevice(later.url, agreed.device_code);
    assert.deepEqual([status, body['error']], [404, 'unauthorized_client']);
    await later.stop();
  });

  it('must be set where clients are declared, and are one of four', async () => {
    test = await startTestService();
    await assert.rejects(startServer(test.keys, { clients: [APP] }), /"consent" is missing.*openKeys/);
    for (const consent of ['on', 'Both', '', true, null])
      await assert.rejects(openKeys({ database: tempStore(), consent: consent as never }), {
        code: 'OPTION_INVALID',
        message: /"consent".* "off", "device", "code" or "both"/,
      });
  });
});
