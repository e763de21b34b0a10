import assert from 'node:assert/strict';
import { allowInsecureRequests, None, processRevocationResponse, revocationRequest } from 'oauth4webapi';
import { Leaks } from '../../../src/features/leaks/leaks.ts';
import { listen, type RunningServer } from '../../../src/http/listen.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { createApp } from '../../../src/service/create-app.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { authenticate, createPrincipal, openTestKeys, type TestKeys } from '../../support/keys.ts';
import { collectingLog } from '../../support/log.ts';

const FORM = 'application/x-www-form-urlencoded';

describeOnEach('a leaked secret', () => {
  let test: TestKeys;
  let server: RunningServer;
  const { log, lines } = collectingLog();

  beforeEach(async () => {
    test = await openTestKeys();
    lines.length = 0;
    const app = await createApp({ keys: test.keys, failedCredentials: '3/m', log });
    server = await listen({ app, host: '127.0.0.1', port: 0 });
  });
  afterEach(async () => {
    await server.stop(0);
    await test.store.close();
  });

  const post = async (path: string, init: RequestInit) => {
    const response = await fetch(server.url + path, { method: 'POST', ...init });
    return { status: response.status, headers: response.headers, body: await response.json() };
  };
  const revoke = (token: string) => post('/revoke', { body: new URLSearchParams({ token }) });
  const create = (name: string) => test.keys.create({ name, roles: ['VIEWER'] }, OPERATOR);
  const entersAs = async (secret: string) => {
    const result = await authenticate(test.keys, secret);
    return 'refused' in result ? result.refused : 'accepted';
  };
  const audit = async () =>
    (await test.keys.audit.read({}, OPERATOR))
      .filter(({ action }) => action !== 'CREATE' && action !== 'REFUSE')
      .map(({ action, actor, apiKey, address, after }) => [
        actor.kind,
        action,
        apiKey?.name,
        address,
        action === 'LEAK' ? after!['place'] : undefined,
      ])
      .toReversed();

  describe('by POST /revoke', () => {
    it('is revoked, as the secret is the proof: its key is disabled, with all that it created', async () => {
      const { secret: key, principal } = await createPrincipal(test.keys, { name: 'CI', roles: ['ADMIN'] });
      const { key: child } = await test.keys.create({ name: 'Child', roles: ['GUEST'] }, principal);
      const as = { issuer: server.url, revocation_endpoint: `${server.url}/revoke` };
      const options = { [allowInsecureRequests]: true };
      await processRevocationResponse(await revocationRequest(as, { client_id: 'any' }, None(), key, options));
      assert.deepEqual([await entersAs(key), await entersAs(child)], ['disabled', 'disabled']);
      assert.deepEqual(await audit(), [
        ['REQUEST', 'LEAK', 'CI', '127.0.0.1', 'POST /revoke'],
        ['REQUEST', 'DISABLE', 'CI', undefined, undefined],
      ]);
      assert.ok(!JSON.stringify(lines).includes(key.slice(17)));
      assert.ok(JSON.stringify(lines).includes('secret revoked'));
      assert.deepEqual([(await revoke(key)).status, (await audit()).length], [200, 2]);
    });

    it('ends alone if a newer one has replaced it', async () => {
      const { key: old, apiKey } = await create('CI');
      const { key: fresh } = await test.keys.rotate(apiKey.id, {}, OPERATOR);
      assert.deepEqual((await revoke(old)).body, {});
      assert.deepEqual([await entersAs(old), await entersAs(fresh)], ['rotated', 'accepted']);
      assert.deepEqual((await audit()).at(-1)!.slice(0, 3), ['REQUEST', 'ROTATE_FINISH', 'CI']);
    });

    it('is answered the same in all cases, until one address has sent too many invalid keys', async () => {
      const { key } = await create('CI');
      const typo = key.slice(0, -1) + (key.endsWith('0') ? '1' : '0');
      for (const token of [typo, 'anything', `svc_${'0'.repeat(12)}_x`]) {
        const { status, body } = await revoke(token);
        assert.deepEqual([status, body], [200, {}]);
      }
      const limited = await revoke(typo);
      assert.equal(limited.status, 429);
      assert.match(limited.headers.get('retry-after')!, /^\d+$/);
      assert.equal(await entersAs(key), 'accepted');
      assert.equal((await revoke(key)).status, 200);
      assert.equal(await entersAs(key), 'disabled');
    });

    it('is taken from a form that has it once, and from nothing else', async () => {
      const { key } = await create('CI');
      const headers = { 'content-type': FORM };
      for (const [status, path, init] of [
        [405, '/revoke', { method: 'GET' }],
        [415, '/revoke', { body: JSON.stringify({ token: key }) }],
        [400, '/revoke', { headers, body: '' }],
        [400, '/revoke', { headers, body: `token=${key}&token=${key}` }],
        [400, `/revoke?token=${key}`, { headers, body: '' }],
      ] as const)
        assert.equal((await post(path, init)).status, status, path);
      assert.equal(await entersAs(key), 'accepted');
    });
  });

  it('is noted once a day for each secret, without the secret', async () => {
    const { apiKey: key, key: secret } = await create('Leaky');
    const leak = { id: key.id, publicId: key.publicId, place: `logs/${secret}.txt:3:4` };
    const note = () => test.keys.feature(Leaks).note(leak);
    assert.deepEqual([await note(), await note()], [true, false]);
    test.time.now += 25 * 3_600_000;
    assert.equal(await note(), true);
    const [entry] = await test.keys.audit.read({ action: 'LEAK' }, OPERATOR);
    const prefix = `svc_${key.publicId}_…`;
    assert.deepEqual(entry!.after, { secret: prefix, place: `logs/${prefix}.txt:3:4` });
    assert.equal((await test.keys.audit.check()).comparison!.differences.length, 0);
  });
});
