import assert from 'node:assert/strict';
import {
  allowInsecureRequests,
  ClientSecretBasic,
  introspectionRequest,
  processIntrospectionResponse,
  WWWAuthenticateChallengeError,
} from 'oauth4webapi';
import { createApp } from '../../src/service/create-app.ts';
import { listen, type RunningServer } from '../../src/http/listen.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { describeOnEach } from '../support/dialects.ts';
import { createPrincipal, openTestKeys, type TestKeys } from '../support/keys.ts';
import { collectingLog } from '../support/log.ts';

const FORM = 'application/x-www-form-urlencoded';

describeOnEach('POST /introspect', () => {
  let test: TestKeys;
  let server: RunningServer;
  let caller: string;
  const { log, lines } = collectingLog();

  beforeEach(async () => {
    test = await openTestKeys();
    ({ key: caller } = await test.keys.create({ name: 'Gateway', permissions: ['API_KEY:READ_ANY'] }, OPERATOR));
    const app = await createApp({ keys: test.keys, credentials: ['bearer', 'basic'], log });
    server = await listen({ app, host: '127.0.0.1', port: 0 });
    lines.length = 0;
  });
  afterEach(async () => {
    await server.stop(0);
    await test.store.close();
  });

  async function send(init: RequestInit, key = caller, path = '/introspect') {
    const headers = new Headers({ authorization: `Bearer ${key}`, 'content-type': FORM });
    for (const [name, value] of new Headers(init.headers)) headers.set(name, value);
    const response = await fetch(server.url + path, { method: 'POST', ...init, headers });
    return { status: response.status, headers: response.headers, body: (await response.json()) as object };
  }
  const introspect = async (token: string) => (await send({ body: new URLSearchParams({ token }) })).body;
  const issue = async (fields: object) =>
    test.keys.create({ name: 'CI deploy', permissions: ['DOCKER:READ_ANY', 'ME:READ_OWN'], ...fields }, OPERATOR);

  it('has the metadata of a key that has some', async () => {
    const metadata = { plan: 'pro', tenant: { id: 7 } };
    const { key, apiKey } = await issue({ metadata });
    const { metadata: answered } = (await introspect(key)) as { metadata?: unknown };
    assert.deepEqual(answered, metadata);
    await test.keys.update(apiKey.id, { metadata: null }, OPERATOR);
    assert.ok(!('metadata' in (await introspect(key))));
  });

  it('returns the permissions of an active key, in the terms of OAuth', async () => {
    const { key: secret, apiKey: key } = await issue({ expiresIn: '90m' });
    const { status, headers, body } = await send({ body: new URLSearchParams({ token: secret }) });
    const issuedAt = test.time.now / 1000;
    assert.deepEqual(body, {
      active: true,
      scope: 'DOCKER:READ_ANY DOCKER:READ_OWN ME:READ_OWN',
      sub: key.id,
      client_id: 'CI deploy',
      token_type: 'Bearer',
      iat: issuedAt,
      exp: issuedAt + 5400,
    });
    assert.deepEqual(
      [status, headers.get('cache-control'), headers.get('content-type')],
      [200, 'no-store', 'application/json'],
    );
  });

  it('omits a missing expiry, and excludes what the creator may not do', async () => {
    const { principal } = await createPrincipal(test.keys, { name: 'Parent', roles: ['ADMIN'] });
    const permissions = ['DOCKER:READ_OWN', 'DISK:READ_OWN'];
    const { key: secret } = await test.keys.create({ name: 'Child', permissions }, principal);
    const [known] = await test.keys.list({ search: 'Parent' }, OPERATOR).then(({ keys }) => keys);
    await test.keys.update(known!.id, { roles: [], permissions: ['DOCKER:READ_ANY'] }, OPERATOR);
    const body = (await introspect(secret)) as { scope: string };
    assert.deepEqual([body.scope, 'exp' in body], ['DOCKER:READ_OWN', false]);
  });

  it('says of inactive keys that they are, and nothing more', async () => {
    const inactive = async () => {
      const { key: secret, apiKey: key } = await issue({ overwrite: true });
      assert.deepEqual(((await introspect(secret)) as { active: boolean }).active, true);
      return { secret, id: key.id };
    };
    const deleted = await inactive();
    await test.keys.delete([deleted.id], OPERATOR);
    assert.deepEqual(await introspect(deleted.secret), { active: false });
    const disabled = await inactive();
    await test.keys.setEnabled(disabled.id, false, OPERATOR);
    assert.deepEqual(await introspect(disabled.secret), { active: false });
    const rotated = await inactive();
    await test.keys.rotate(rotated.id, { grace: '0s' }, OPERATOR);
    assert.deepEqual(await introspect(rotated.secret), { active: false });
    const { key: expiring } = await issue({ overwrite: true, expiresIn: '1m' });
    test.time.now += 60_000;
    assert.deepEqual(await introspect(expiring), { active: false });
    const unknown = ['nonsense', `${expiring.slice(0, -1)}!`, expiring.slice(0, -1), ' ', '\0', 'ü'.repeat(1000)];
    for (const token of unknown) assert.deepEqual(await introspect(token), { active: false });
  });

  it('returns until when the previous secret of a rotated key works', async () => {
    const { key: secret, apiKey: key } = await issue({});
    await test.keys.rotate(key.id, { grace: '10m' }, OPERATOR);
    const { exp } = (await introspect(secret)) as { exp: number };
    assert.equal(exp, test.time.now / 1000 + 600);
  });

  it('is no use of the key, and no refused request', async () => {
    const { key: secret, apiKey: key } = await issue({});
    const rotated = await test.keys.rotate(key.id, { activate: 'on-first-use' }, OPERATOR);
    for (const token of [secret, rotated.key, 'nonsense', `${secret}x`]) await introspect(token);
    await test.keys.finishActivity();
    assert.equal((await test.keys.useOf([key.id])).get(key.id), undefined);
    assert.equal((await test.keys.findById(key.id, OPERATOR))?.rotation?.previousEndsAt, null);
    const entries = await test.keys.audit.read({}, OPERATOR);
    assert.deepEqual([entries.filter(({ actor }) => actor.kind === 'REQUEST'), lines], [[], []]);
  });

  it("applies a key's networks, and those of its parent keys, to the address in the form", async () => {
    const bound = { allowFrom: ['192.0.2.0/24', '2001:db8::/32'] };
    const { key: secret } = await issue(bound);
    const isActive = async (token: string, address?: string) => {
      const form = new URLSearchParams({ token, ...(address !== undefined && { address }) });
      return ((await send({ body: form })).body as { active: boolean }).active;
    };
    for (const address of [undefined, '192.0.2.7', '::ffff:192.0.2.7', '2001:db8::1'])
      assert.equal(await isActive(secret, address), true, address);
    for (const address of ['', '198.51.100.7', '2001:db9::1', 'unknown', '192.0.2.7, 198.51.100.7'])
      assert.equal(await isActive(secret, address), false, address);
    const { principal } = await createPrincipal(test.keys, { name: 'Parent', roles: ['ADMIN'], ...bound });
    const { key: child } = await test.keys.create({ name: 'Child', roles: ['GUEST'] }, principal);
    assert.deepEqual([await isActive(child, '192.0.2.7'), await isActive(child, '198.51.100.7')], [true, false]);
    const { key: free } = await issue({ name: 'Free' });
    assert.deepEqual([await isActive(free, ''), await isActive(free, '198.51.100.7')], [true, true]);
  });

  it('asks for API_KEY:READ_ANY', async () => {
    const { key: secret } = await issue({ permissions: ['API_KEY:READ_OWN', 'ME:READ_OWN'] });
    const { status, headers } = await send({ body: new URLSearchParams({ token: caller }) }, secret);
    assert.equal(status, 403);
    const challenge = 'Bearer realm="svc-api", error="insufficient_scope", scope="API_KEY:READ_ANY"';
    assert.equal(headers.get('www-authenticate'), challenge);
    const wrong = await send({ body: new URLSearchParams({ token: secret }) }, 'nonsense');
    // Node's fetch sends Sec-Fetch-Mode like a script, which gets no Basic challenge.
    assert.deepEqual(
      [wrong.status, wrong.headers.get('www-authenticate')],
      [401, 'Bearer realm="svc-api", error="invalid_token"'],
    );
  });

  it('ignores hints and unknown parameters', async () => {
    const body = `token_type_hint=refresh_token&token=${caller}&resource=x&resource=y`;
    assert.equal(((await send({ body })).body as { active: boolean }).active, true);
  });

  const long = 'x'.repeat(16 * 1024);
  const faults: [what: string, init: RequestInit, status: number, message: string][] = [
    ['no token', { body: 'token_type_hint=access_token' }, 400, 'The form must have exactly one "token"'],
    ['an empty token', { body: 'token=' }, 400, 'The form must have exactly one "token"'],
    ['two tokens', { body: 'token=a&token=a' }, 400, 'The form must have exactly one "token"'],
    [
      'two addresses',
      { body: 'token=a&address=192.0.2.7&address=198.51.100.7' },
      400,
      'The form must have at most one',
    ],
    ['an empty body', { body: '' }, 400, 'The form must have exactly one "token"'],
    [
      'JSON',
      { body: '{"token":"a"}', headers: { 'content-type': 'application/json' } },
      415,
      `The body must be ${FORM}`,
    ],
    [
      'another charset',
      { body: 'token=a', headers: { 'content-type': `${FORM}; charset=utf-16` } },
      415,
      'The body must',
    ],
    ['a compressed body', { body: 'token=a', headers: { 'content-encoding': 'gzip' } }, 415, 'The body must be'],
    ['a long body', { body: `token=${long}` }, 413, 'The body is larger than 16384 bytes'],
    ['PUT', { method: 'PUT', body: 'token=a' }, 405, 'Keys are introspected by POST only.'],
  ];
  for (const [what, init, status, message] of faults)
    it(`refuses ${what}: ${status}`, async () => {
      const { status: answered, headers, body } = await send(init);
      const { error, error_description: description, errors } = body as Record<string, unknown>;
      assert.deepEqual([answered, error, headers.get('cache-control')], [status, 'invalid_request', 'no-store']);
      assert.ok((description as string).startsWith(message), description as string);
      assert.equal((errors as { message: string }[])[0]!.message, description);
    });

  it('refuses GET, and never reads a token from the address', async () => {
    const response = await send({ method: 'GET' }, caller, `/introspect?token=${caller}`);
    assert.deepEqual([response.status, response.headers.get('allow')], [405, 'POST']);
    assert.equal((await send({ body: 'x=y' }, caller, `/introspect?token=${caller}`)).status, 400);
  });

  it('refuses a long body in pieces once it is too long', async () => {
    const pieces = new ReadableStream({
      pull: (controller) => controller.enqueue(Buffer.from(`token=${long}`)),
    });
    const { status } = await send({ body: pieces, duplex: 'half' });
    assert.equal(status, 413);
  });

  it('answers a client of OAuth, whose secret is a key', async () => {
    const as = { issuer: server.url, introspection_endpoint: `${server.url}/introspect` };
    const client = { client_id: 'gateway' };
    const insecure = { [allowInsecureRequests]: true };
    const { key: secret, apiKey: key } = await issue({});
    const ask = async (token: string, key_ = caller) =>
      processIntrospectionResponse(
        as,
        client,
        await introspectionRequest(as, client, ClientSecretBasic(key_), token, insecure),
      );
    const answer = await ask(secret);
    assert.deepEqual([answer.active, answer.sub, answer.client_id], [true, key.id, 'CI deploy']);
    assert.deepEqual(await ask('nonsense'), { active: false });
    await assert.rejects(ask(secret, 'nonsense'), WWWAuthenticateChallengeError);
  });

  it('answers 503 while the store does not answer', async () => {
    assert.deepEqual(await introspect('nonsense'), { active: false });
    await test.store.close();
    const { status, headers } = await send({ body: 'token=a' });
    assert.deepEqual([status, headers.get('retry-after')], [503, '1']);
  });
});
