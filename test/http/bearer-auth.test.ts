import assert from 'node:assert/strict';
import { renameSync } from 'node:fs';
import { createSecret } from '../../src/keys/secret.ts';
import { OPERATOR } from '../../src/keys/principal.ts';
import { randomBytes } from 'node:crypto';
import { createPrincipal, openTestKeys, type TestKeys } from '../support/keys.ts';
import { collectingLog } from '../support/log.ts';
import { exchange } from '../support/raw.ts';
import { query, startServer, type TestServer } from '../support/server.ts';

describe('the bearer check', () => {
  let open: TestKeys;
  let server: TestServer;
  let secret: string;
  const { log, lines } = collectingLog();
  before(async () => {
    open = await openTestKeys();
    ({ secret } = await createPrincipal(open.keys, { name: 'CI deploy', roles: ['GUEST'] }));
    server = await startServer(open.keys, { log });
  });
  after(async () => {
    await server.stop();
    await open.store.close();
  });

  const ask = async (headers: Record<string, string>, path = '/graphql') => {
    const response = await fetch(server.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: '{"query":"{ me { name } }"}',
    });
    const { errors } = (await response.clone().json()) as { errors?: { message: string; extensions: { code: string } }[] };
    return {
      status: response.status,
      challenge: response.headers.get('www-authenticate'),
      cache: response.headers.get('cache-control'),
      body: await response.text(),
      code: errors?.[0]?.extensions.code,
    };
  };

  it('asks for credentials where there are none', async () => {
    const reply = await ask({});
    assert.equal(reply.status, 401);
    assert.equal(reply.challenge, 'Bearer realm="svc-api"');
    assert.equal(reply.cache, 'no-store');
    assert.deepEqual(JSON.parse(reply.body), {
      errors: [{ message: 'An API key is needed: send it as "Authorization: Bearer <API key>".', extensions: { code: 'UNAUTHENTICATED' } }],
    });
  });

  it('takes credentials of another scheme for none', async () => {
    for (const authorization of ['Basic dXNlcjpwYXNzd29yZA==', 'Digest username="x", realm="y"']) {
      const { status, challenge } = await ask({ authorization });
      assert.deepEqual({ status, challenge }, { status: 401, challenge: 'Bearer realm="svc-api"' });
    }
  });

  it('gives one and the same answer for every key that is not valid, and the log tells them apart', async () => {
    const deleted = await createPrincipal(open.keys, { name: 'Deleted', roles: ['ADMIN'] });
    await open.keys.delete([deleted.principal.key.id], OPERATOR);
    const unknown = createSecret(randomBytes);
    const mistyped = `${secret.slice(0, -1)}${secret.endsWith('0') ? '1' : '0'}`;
    lines.length = 0;
    const replies = await Promise.all(
      [deleted.secret, unknown.text, mistyped, 'short', 'x'.repeat(5000)].map((key) => ask({ authorization: `Bearer ${key}` })),
    );
    assert.equal(replies[0]!.status, 401);
    assert.equal(replies[0]!.challenge, 'Bearer realm="svc-api", error="invalid_token"');
    for (const reply of replies) assert.deepEqual(reply, replies[0]);
    const reasons = lines.map(({ fields }) => fields as { reason: string; prefix?: string });
    assert.equal(reasons.filter(({ reason }) => reason === 'malformed').length, 3);
    assert.ok(reasons.some(({ reason, prefix }) => reason === 'unknown' && prefix === unknown.publicId));
    assert.doesNotMatch(JSON.stringify(lines), /svc_[0-9A-Za-z]{12}_[0-9A-Za-z]/);
  });

  it('refuses a malformed header, and two of them', async () => {
    for (const authorization of ['Bearer', 'Bearer a b', '', secret, 'Bearer schlüssel', `Bearer ${secret}, Bearer ${secret}`]) {
      const { status, challenge, code } = await ask({ authorization });
      assert.deepEqual(
        { status, challenge, code },
        { status: 400, challenge: 'Bearer realm="svc-api", error="invalid_request"', code: 'INVALID_REQUEST' },
        authorization,
      );
    }
    const twice = `POST /graphql HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${secret}\r\nAuthorization: Bearer ${secret}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`;
    assert.match(await exchange(server.url, twice), /^HTTP\/1\.1 400 .*error="invalid_request"/s);
  });

  it('takes the scheme in any case', async () => {
    for (const scheme of ['Bearer', 'bearer', 'BEARER']) assert.equal((await ask({ authorization: `${scheme} ${secret}` })).status, 200);
  });

  it('never reads a key in the address or in the body', async () => {
    assert.equal((await ask({}, `/graphql?access_token=${secret}&authorization=Bearer%20${secret}`)).status, 401);
    const response = await fetch(`${server.url}/graphql`, { method: 'POST', body: new URLSearchParams({ access_token: secret }) });
    assert.equal(response.status, 401);
    await response.body?.cancel();
  });

  it('answers before anything of the body is read', async () => {
    const head = 'POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000000000\r\n\r\n{';
    assert.match(await exchange(server.url, head, 'UNAUTHENTICATED'), /^HTTP\/1\.1 401 /);
  });

  it('answers headers that are too large in the form of all errors', async () => {
    const reply = await exchange(server.url, `POST /graphql HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${'x'.repeat(100_000)}\r\n\r\n`);
    assert.match(reply, /^HTTP\/1\.1 431 .*\{"errors":\[\{"message":"[^"]+","extensions":\{"code":"HEADERS_TOO_LARGE"\}\}\]\}$/s);
    assert.equal((await ask({ authorization: `Bearer ${secret}` })).status, 200);
  });

  it('sees from the next request on what another process did to a key', async () => {
    const other = await openTestKeys({ database: open.store.location });
    const { secret: changing, principal } = await createPrincipal(other.keys, { name: 'Changing', roles: ['GUEST'] });
    const me = async () => (await query(server.url, changing, '{ me { roles } }')).body.data?.['me'];
    assert.deepEqual(await me(), { roles: ['GUEST'] });
    await other.keys.update(principal.key.id, { roles: ['VIEWER'] }, OPERATOR);
    assert.deepEqual(await me(), { roles: ['VIEWER'] });
    await other.keys.delete([principal.key.id], OPERATOR);
    assert.equal((await query(server.url, changing, '{ me { roles } }')).status, 401);
    await other.store.close();
  });

  it('lets nobody in while the store is gone, and works again when it is back', async () => {
    const path = open.store.location;
    renameSync(path, `${path}.away`);
    const reply = await ask({ authorization: `Bearer ${secret}` });
    assert.deepEqual({ status: reply.status, code: reply.code }, { status: 503, code: 'SERVICE_UNAVAILABLE' });
    assert.doesNotMatch(reply.body, /sqlite|\//);
    const ready = await fetch(`${server.url}/readyz`);
    assert.equal(ready.status, 503);
    await ready.body?.cancel();
    renameSync(`${path}.away`, path);
    assert.equal((await ask({ authorization: `Bearer ${secret}` })).status, 200);
  });
});
