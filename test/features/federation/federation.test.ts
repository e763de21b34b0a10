import assert from 'node:assert/strict';
import { createHmac, randomUUID } from 'node:crypto';
import { exportSPKI, importJWK } from 'jose';
import { parseConfig } from '../../../src/config/load-config.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { postJson } from '../consent/support/consent.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { startIssuer, type TestIssuer } from '../../support/issuer.ts';
import { principalOf } from '../../support/keys.ts';
import { query, startServer, startTestService, type TestService } from '../../support/server.ts';

const AUDIENCE = 'https://keys.example.org';
const JWT = 'urn:ietf:params:oauth:token-type:jwt';
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';

describeOnEach('the exchange of a token of an issuer for a key', () => {
  let issuer: TestIssuer;
  let test: TestService;
  const rules = () => `publicUrl: ${AUDIENCE}
federation:
  - name: deploys
    issuer: { preset: github, url: "${issuer.url}" }
    when: { repository_id: "123", ref: [refs/heads/main, refs/heads/release] }
    grant: [DOCKER:UPDATE_ANY, role:GUEST]
  - name: reports
    issuer: { url: "${issuer.url}" }
    when: { sub: report }
    grant: [DOCKER:READ_ANY]
    ttl: 2m
    reuse: true
`;
  const configOf = (text: string) => parseConfig({ path: '/svc-api.yaml', text });
  beforeEach(async () => {
    issuer = await startIssuer();
    test = await startTestService({ app: { config: await configOf(rules()) } });
  });
  afterEach(async () => {
    await test.stop();
    await issuer.stop();
  });
  const seconds = () => Math.floor(test.time.now / 1000);
  const claims = (more: Record<string, unknown> = {}) => ({
    aud: AUDIENCE,
    sub: 'repo:acme/app:ref:refs/heads/main',
    repository_id: '123',
    ref: 'refs/heads/main',
    jti: randomUUID(),
    iat: seconds(),
    exp: seconds() + 300,
    ...more,
  });
  const tokenFor = (more?: Record<string, unknown>) => issuer.sign(claims(more));
  /** A new address each time: repeated failures from one address are no longer explained. */
  const elsewhere = () => ({ 'x-forwarded-for': `2001:db8:${(count += 1).toString(16)}::1` });
  let count = 0;
  const exchange = (token: string, form: Record<string, string> = {}, { url = test.url, headers = {} } = {}) =>
    postJson(
      `${url}/oauth/token`,
      { grant_type: EXCHANGE, subject_token: token, subject_token_type: JWT, ...form },
      headers,
    );
  /** The reason why a token is refused. */
  const refusal = async (token: string, form: Record<string, string> = {}) => {
    const { status, body } = await exchange(token, form, { headers: elsewhere() });
    assert.deepEqual([status, body['error']], [400, 'invalid_request'], JSON.stringify(body));
    return body['error_description'] as string;
  };
  const statusOf = async (key: string) => (await query(test.url, key, '{ online }')).status;

  it('gives what the rule grants, for its time, as a child key of the one that stands for the rule', async () => {
    const { status, body, headers } = await exchange(await tokenFor());
    const { access_token: key, ...rest } = body as { access_token: string };
    assert.equal(status, 200, JSON.stringify(body));
    assert.equal(headers.get('cache-control'), 'no-store');
    assert.deepEqual(rest, {
      issued_token_type: ACCESS_TOKEN,
      token_type: 'Bearer',
      expires_in: 900,
      scope: 'role:GUEST DOCKER:UPDATE_ANY',
    });
    assert.equal(await statusOf(key), 200);
    const { apiKey, chain } = await principalOf(test.keys, key);
    const [, rule] = chain.keys;
    assert.deepEqual([rule!.name, rule!.person?.issuer, rule!.person?.subject], ['deploys', 'federation', 'deploys']);
    assert.match(apiKey.name, /^deploys [0-9A-Za-z]{8}$/);
    await test.keys.setEnabled(rule!.id, false, OPERATOR);
    assert.equal(await statusOf(key), 401);
    const disabled = await exchange(await tokenFor());
    assert.equal(disabled.body['error'], 'invalid_scope', 'nor does it issue another one');
    await test.keys.setEnabled(rule!.id, true, OPERATOR);
    await test.keys.delete([rule!.id], OPERATOR);
    assert.equal(await statusOf(key), 401);
    assert.equal((await exchange(await tokenFor())).status, 200, 'the rule itself is still there');
  });

  it('takes an assertion as RFC 7523 has it, and says that it does', async () => {
    const form = { grant_type: BEARER, assertion: await tokenFor(), scope: 'role:GUEST', expires_in: '60' };
    const { status, body } = await postJson(`${test.url}/oauth/token`, form);
    assert.deepEqual(
      [status, body['scope'], body['expires_in'], body['issued_token_type']],
      [200, 'role:GUEST', 60, undefined],
    );
    const again = await postJson(`${test.url}/oauth/token`, form);
    assert.deepEqual([again.status, again.body['error']], [400, 'invalid_grant']);
    const metadata = await (await fetch(`${test.url}/.well-known/oauth-authorization-server`)).json();
    assert.ok((metadata as { grant_types_supported: string[] }).grant_types_supported.includes(BEARER));
    const without = await startServer(test.keys);
    const unknown = await postJson(`${without.url}/oauth/token`, form);
    assert.equal(unknown.body['error'], 'unsupported_grant_type');
    assert.match(
      (await exchange(await tokenFor(), {}, without)).body['error_description'] as string,
      /access_token\.$/,
    );
    await without.stop();
  });

  it('never widens what the rule grants, nor its time', async () => {
    for (const scope of ['role:ADMIN', 'DOCKER:READ_ANY', 'role:GUEST DOCKER:DELETE_ANY']) {
      const { status, body } = await exchange(await tokenFor(), { scope });
      assert.deepEqual([status, body['error']], [400, 'invalid_scope'], scope);
    }
    for (const expires of ['901', '0', 'soon']) {
      const { body } = await exchange(await tokenFor(), { expires_in: expires });
      assert.equal(body['error'], 'invalid_request', expires);
    }
    const token = await tokenFor();
    assert.equal((await exchange(token, { scope: 'role:ADMIN' })).status, 400);
    assert.equal((await exchange(token)).status, 200, 'what is refused uses no token up');
  });

  it('goes by the first rule whose claims a token has, exactly', async () => {
    const scopeFor = async (more: Record<string, unknown>) => (await exchange(await tokenFor(more))).body['scope'];
    assert.equal(await scopeFor({ sub: 'report' }), 'role:GUEST DOCKER:UPDATE_ANY');
    assert.equal(await scopeFor({ sub: 'report', ref: 'refs/heads/other' }), 'DOCKER:READ_ANY');
    assert.equal(await scopeFor({ repository_id: 123 }), 'role:GUEST DOCKER:UPDATE_ANY', 'a number is as its text');
    for (const more of [
      { ref: 'refs/heads/Main' },
      { ref: 'refs/heads/main ' },
      { ref: ['refs/heads/main'] },
      { ref: { toString: 'refs/heads/main' } },
      { ref: undefined },
      { repository_id: '1234' },
      { repository_id: null },
    ])
      assert.match(await refusal(await tokenFor(more)), /meets no rule/, JSON.stringify(more));
  });

  it('takes a token once, on every server of the store, unless the rule says otherwise', async () => {
    const other = await startServer(test.keys, { config: await configOf(rules()) });
    const token = await tokenFor();
    const both = await Promise.all([exchange(token), exchange(token, {}, other)]);
    assert.deepEqual(
      both.map(({ status }) => status).toSorted((one, two) => one - two),
      [200, 400],
    );
    assert.match(await refusal(token), /was used before.*reuse: true/);
    const jti = randomUUID();
    assert.equal((await exchange(await tokenFor({ jti }))).status, 200);
    assert.match(await refusal(await tokenFor({ jti, exp: seconds() + 200 })), /was used before/);
    const nameless = await tokenFor({ jti: undefined });
    assert.equal((await exchange(nameless)).status, 200);
    assert.match(await refusal(nameless), /was used before/);
    const reused = await tokenFor({ sub: 'report', ref: 'x' });
    for (const _ of [1, 2]) assert.equal((await exchange(reused)).status, 200);
    test.time.now += 600_000;
    assert.equal((await exchange(await tokenFor())).status, 200);
    await other.stop();
  });

  it('refuses unsigned tokens, and those signed by others or with a well-known secret', async () => {
    const [header, payload, signature] = (await tokenFor()).split('.') as [string, string, string];
    const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');
    for (const alg of ['none', 'None', 'NONE']) {
      await refusal(`${encode({ alg, typ: 'JWT' })}.${payload}.`);
      await refusal(`${encode({ alg, typ: 'JWT', kid: 'key 1' })}.${payload}.${signature}`);
    }
    const [jwk] = issuer.keys;
    const pem = await exportSPKI((await importJWK(jwk!, 'ES256')) as never);
    for (const secret of [pem, JSON.stringify(jwk), jwk!.x!]) {
      const signed = `${encode({ alg: 'HS256', typ: 'JWT', kid: 'key 1' })}.${payload}`;
      const mac = createHmac('sha256', secret).update(signed).digest('base64url');
      assert.match(await refusal(`${signed}.${mac}`), /signature algorithm of the token is not allowed/);
    }
    const stranger = await startIssuer();
    const foreign = await stranger.sign(claims({ iss: issuer.url }), { kid: 'key 1' });
    assert.match(await refusal(foreign), /signature of the token is invalid/);
    const embedded = await stranger.sign(claims({ iss: issuer.url }), { kid: 'key 1', jwk: stranger.keys[0] });
    assert.match(await refusal(embedded), /signature of the token is invalid/);
    assert.match(await refusal(await stranger.sign(claims())), /issuer of the token is not trusted/);
    assert.deepEqual(stranger.requests, [], 'nobody asks an issuer that is not trusted');
    await stranger.stop();
    const changed = encode({ ...(JSON.parse(Buffer.from(payload, 'base64url').toString()) as object), ref: 'x' });
    assert.match(await refusal(`${header}.${changed}.${signature}`), /signature of the token is invalid/);
    for (const odd of ['x', 'a.b', 'a.b.c', `${header}.${payload}`, `${header}.${payload}.${signature}.x`, '..'])
      await refusal(odd);
    await issuer.rotate('RS512');
    test.time.now += 60_000;
    assert.match(await refusal(await tokenFor()), /not allowed: use RS256 or ES256/);
  });

  it("refuses tokens that are not about a workload's identity", async () => {
    const typed = (typ: string) => issuer.sign(claims(), { typ });
    for (const typ of ['oauth-id-jag+jwt', 'application/OAuth-ID-JAG+JWT', 'logout+jwt', 'dpop+jwt', 'secevent+jwt'])
      assert.match(await refusal(await typed(typ)), /are not supported/, typ);
    for (const typ of ['jwt', 'application/jwt', 'JOSE', 'at+jwt'])
      assert.equal((await exchange(await typed(typ))).status, 200, typ);
    for (const client_id of ['other', '', null, ['svc-api']])
      assert.match(await refusal(await tokenFor({ client_id })), /meets no rule/, JSON.stringify(client_id));
    assert.equal((await exchange(await tokenFor({ client_id: 'svc-api' }))).status, 200);
    const named = rules().replace('sub: report', 'sub: report, client_id: reporter');
    const server = await startServer(test.keys, { config: await configOf(named) });
    const token = await tokenFor({ sub: 'report', ref: 'x', client_id: 'reporter' });
    assert.equal((await exchange(token, {}, server)).status, 200, 'the rule names it');
    await server.stop();
  });

  it('takes no name that looks like that of another key', async () => {
    await test.keys.create({ name: 'Payroll', roles: ['GUEST'] }, OPERATOR);
    const lookAlike = 'P\u0430yroll';
    assert.match(await refusal(await tokenFor(), { name: lookAlike }), /looks like/);
    assert.match(await refusal(await tokenFor(), { name: 'Payroll' }), /Payroll/);
    const { key: holder } = await test.keys.create({ name: 'Holder', permissions: ['API_KEY:CREATE_OWN'] }, OPERATOR);
    const again = { subject_token_type: ACCESS_TOKEN, name: lookAlike };
    assert.match(await refusal(holder, again), /looks like/);
    assert.deepEqual(await test.keys.audit.read({ action: 'CREATE', apiKey: lookAlike }, OPERATOR), []);
  });

  it('refuses tokens for another service', async () => {
    for (const aud of ['https://other.example.org', `${AUDIENCE}/`, test.url, [], undefined, [[AUDIENCE]]])
      await refusal(await tokenFor({ aud }));
    assert.equal((await exchange(await tokenFor({ aud: ['https://other.example.org', AUDIENCE] }))).status, 200);
    const { body } = await exchange(await tokenFor(), { audience: 'other' });
    assert.equal(body['error'], 'invalid_target');
    const bound = await exchange(await tokenFor(), { resource: 'https://other.example.org/mcp' });
    assert.equal(await statusOf(bound.body['access_token'] as string), 401, 'a key for another resource');
  });

  it('goes by the time, a minute more or less', async () => {
    const now = seconds();
    for (const [more, text] of [
      [{ exp: now - 61 }, /has expired/],
      [{ exp: undefined }, /'exp' of the token is missing/],
      [{ exp: 'soon' }, /'exp' of the token/],
      [{ nbf: now + 61 }, /not valid yet/],
      [{ iat: now + 61 }, /not valid yet/],
      [{ sub: undefined }, /'sub' of the token is missing/],
      [{ sub: '' }, /'sub' of the token is not a name/],
    ] as const)
      assert.match(await refusal(await tokenFor(more)), text, JSON.stringify(more));
    for (const more of [
      { exp: now - 59 },
      { nbf: now + 59 },
      { iat: now + 59 },
      { exp: now + 0.0005 },
      { iat: undefined },
    ]) {
      const { status, body } = await exchange(await tokenFor(more));
      assert.equal(status, 200, JSON.stringify([more, body]));
    }
  });

  it('is in the audit log with issuer, subject and rule, and counts as a use of the rule', async () => {
    const jti = randomUUID();
    const { body } = await exchange(await tokenFor({ jti }));
    const { apiKey, chain } = await principalOf(test.keys, body['access_token'] as string);
    const [entry] = await test.keys.audit.read({ action: 'FEDERATE' }, OPERATOR);
    assert.deepEqual(
      [entry!.actor.name, entry!.apiKey?.id, entry!.address, entry!.after],
      [
        'deploys',
        apiKey.id,
        '127.0.0.1',
        { rule: 'deploys', issuer: issuer.url, subject: 'repo:acme/app:ref:refs/heads/main', token: jti },
      ],
    );
    const [created] = await test.keys.audit.read({ action: 'CREATE', apiKey: apiKey.id }, OPERATOR);
    assert.equal(created!.actor.id, chain.keys[1]!.id);
    await test.keys.finishActivity();
    const usage = await test.keys.useOf([chain.keys[1]!.id]);
    assert.equal(usage.get(chain.keys[1]!.id)?.uses, 1);
  });

  it('reduces the keys that it has given when the rule grants less, and extends none', async () => {
    const { body } = await exchange(await tokenFor());
    const key = body['access_token'] as string;
    const narrower = rules().replace('DOCKER:UPDATE_ANY, role:GUEST', 'DOCKER:UPDATE_ANY');
    const server = await startServer(test.keys, { config: await configOf(narrower) });
    assert.equal((await exchange(await tokenFor(), {}, server)).body['scope'], 'DOCKER:UPDATE_ANY');
    const { data } = (await query(test.url, key, '{ online }')).body;
    assert.equal(data?.['online'], null);
    await server.stop();
    test.time.now += 901_000;
    assert.equal(await statusOf(key), 401);
  });

  it('deletes ended keys that it has given, once the rule gives more', async () => {
    const names = async () => (await test.keys.list({ owner: 'deploys' }, OPERATOR)).keys.map(({ name }) => name);
    for (const _ of [1, 2, 3]) assert.equal((await exchange(await tokenFor())).status, 200);
    assert.equal((await names()).length, 4);
    test.time.now += 901_000;
    assert.equal((await exchange(await tokenFor())).status, 200);
    assert.equal((await names()).length, 2, 'the key of the rule, and the new one');
  });

  it('lets the holder of a key that it has given end it', async () => {
    const { body } = await exchange(await tokenFor());
    const form = { client_id: 'svc-api', token: body['access_token'] as string };
    assert.equal((await postJson(`${test.url}/oauth/revoke`, form)).status, 200);
    assert.equal(await statusOf(form.token), 401);
  });

  it('answers 503 while nothing is known of the issuer, which is away', async () => {
    issuer.answer = (response) => response.writeHead(500).end();
    const { status, body, headers } = await exchange(await tokenFor());
    assert.deepEqual([status, body['error']], [503, 'temporarily_unavailable']);
    assert.equal(headers.get('retry-after'), '10');
    issuer.answer = undefined;
    test.time.now += 10_000;
    assert.equal((await exchange(await tokenFor())).status, 200);
  });

  it('names no rules and no token in refusals', async () => {
    const token = await tokenFor({ ref: 'refs/heads/other' });
    const { text } = { text: JSON.stringify((await exchange(token)).body) };
    for (const secret of ['deploys', '123', 'refs/heads', token]) assert.ok(!text.includes(secret), secret);
  });
});
