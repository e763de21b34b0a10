import assert from 'node:assert/strict';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { ask } from '../support/proxies/client.ts';
import { describeEachProxy, withKey } from '../support/proxies/describe.ts';

describeEachProxy('a refused request', {}, (site) => {
  /** The status and the challenge of a refusal, of which the service must have seen nothing. */
  const refusal = async (headers: [string, string][]) => {
    const before = site().service.requests();
    const { status, headers: answered } = await ask(site().proxy.port, { path: '/api/x', headers });
    assert.equal(site().service.requests(), before);
    return [status, answered['www-authenticate']];
  };
  const reader = async (name: string) =>
    (await site().keys.create({ name, permissions: ['GRAFANA:READ_ANY'] }, OPERATOR)).key;

  it('without a key is told to send one', async () => {
    assert.deepEqual(await refusal([]), [401, 'Bearer realm="svc-api"']);
    assert.deepEqual(await refusal([['Authorization', 'Basic dXNlcjpwYXNz']]), [401, 'Bearer realm="svc-api"']);
  });

  it('with a key that is not valid is told so', async () => {
    const problem = 'Bearer realm="svc-api", error="invalid_token"';
    assert.deepEqual(await refusal([withKey('svc_000000000000_wrong')]), [401, problem]);
    assert.deepEqual(await refusal([withKey('x'.repeat(6000))]), [401, problem]);
  });

  it('with a key that lacks the permission is told which', async function () {
    const { key: secret } = await site().keys.create({ name: 'Other', roles: ['GUEST'] }, OPERATOR);
    const [status, challenge] = await refusal([withKey(secret)]);
    assert.equal(status, 403);
    // nginx passes on the challenge of a 401 alone.
    if (challenge !== undefined)
      assert.equal(challenge, 'Bearer realm="svc-api", error="insufficient_scope", scope="GRAFANA:READ_ANY"');
  });

  it('with two credentials is a refused one, also where one of them is valid', async () => {
    const secret = await reader('Twice');
    for (const second of [withKey(secret), withKey('x'), ['authorization', 'Basic eDp5'] as [string, string]]) {
      // nginx refuses the two headers by itself.
      assert.ok([400, 401].includes(Number((await refusal([withKey(secret), second]))[0])));
    }
  });

  it('over the limit of its key is told when to try again', async () => {
    const { key: secret } = await site().keys.create(
      { name: 'Limited', permissions: ['GRAFANA:READ_ANY'], limits: ['2/h'] },
      OPERATOR,
    );
    const send = () => ask(site().proxy.port, { headers: [withKey(secret)] });
    assert.deepEqual([(await send()).status, (await send()).status], [200, 200]);
    const { status, headers, got } = await send();
    assert.deepEqual([status, got, Number(headers['retry-after']) > 1000], [429, undefined, true]);
  });

  it('from elsewhere than its key may be used is one by the address of the client', async () => {
    const of = async (name: string, allowFrom: string) =>
      (await site().keys.create({ name, permissions: ['GRAFANA:READ_ANY'], allowFrom: [allowFrom] }, OPERATOR)).key;
    const [near, far] = [await of('Near', '127.0.0.1'), await of('Far', '203.0.113.7')];
    const send = (secret: string, ...headers: [string, string][]) =>
      ask(site().proxy.port, { headers: [withKey(secret), ...headers] });
    assert.equal((await send(near)).status, 200);
    assert.equal((await send(far)).status, 403);
    assert.equal((await send(far, ['X-Forwarded-For', '203.0.113.7'])).status, 403);
    assert.equal((await send(far, ['X-Real-IP', '203.0.113.7'])).status, 403);
  });

  it('is the next one, when a key is disabled or deleted', async () => {
    for (const end of ['update', 'delete'] as const) {
      const secret = await reader(`Ends by ${end}`);
      const { status, got } = await ask(site().proxy.port, { headers: [withKey(secret)] });
      assert.equal(status, 200);
      const id = got!.headers.find(([name]) => name === 'x-auth-key-id')![1];
      if (end === 'delete') await site().keys.delete([id], OPERATOR);
      else await site().keys.setEnabled(id, false, OPERATOR);
      assert.equal((await refusal([withKey(secret)]))[0], 401);
    }
  });
});

let isDown = false;
const failing: NonNullable<Parameters<typeof describeEachProxy>[1]>['repository'] = (repository) => ({
  ...repository,
  findByDigest: (digest) => {
    if (isDown) throw Object.assign(new Error('The disk is gone.'), { code: 'STORE_FAILED' });
    return repository.findByDigest(digest);
  },
});

describeEachProxy('the key store', { repository: failing }, (site) => {
  beforeEach(() => (isDown = false));
  after(() => (isDown = false));

  it('that does not answer accepts nobody, with status 503', async () => {
    const { key: secret } = await site().keys.create({ name: 'Reader', permissions: ['GRAFANA:READ_ANY'] }, OPERATOR);
    isDown = true;
    assert.equal((await ask(site().proxy.port, { headers: [withKey(secret)] })).status, 503);
    isDown = false;
    assert.equal((await ask(site().proxy.port, { headers: [withKey(secret)] })).status, 200);
  });
});

describeEachProxy('svc-api', {}, (site, name) => {
  it('that is not there accepts nobody', async () => {
    const { key: secret } = await site().keys.create({ name: 'Reader', permissions: ['GRAFANA:READ_ANY'] }, OPERATOR);
    const send = () => ask(site().proxy.port, { headers: [withKey(secret)] });
    assert.equal((await send()).status, 200);
    await site().stopSvcApi();
    const before = site().service.requests();
    const expected = { nginx: 503, caddy: 502, haproxy: 503, apache: 503 }[name];
    assert.equal((await send()).status, expected);
    assert.equal(site().service.requests(), before);
  });
});
