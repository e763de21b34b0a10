import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { createApp } from '../../src/index.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { type OpenKeys, openKeys } from '../../src/service/open-keys.ts';
import { runCliHere } from '../support/cli-here.ts';
import { insertKeys, numberedKeys } from '../support/insert-keys.ts';
import { authenticate } from '../support/keys.ts';

describe('a store in memory', () => {
  let keys: OpenKeys;
  beforeEach(async () => {
    keys = await openKeys({ database: ':memory:' });
  });
  afterEach(() => keys.close());
  const given = (name: string) => keys.create({ name, roles: ['GUEST'] }, OPERATOR);
  const isAccepted = async (secret: string) => 'principal' in (await authenticate(keys, secret));

  it('is new each time that one is opened, and makes no file', async () => {
    const { key: secret } = await given('A');
    const other = await openKeys({ env: { SVC_API_DATABASE: ':memory:' } });
    await other.create({ name: 'A', roles: ['GUEST'] }, OPERATOR);
    assert.equal('principal' in (await authenticate(other, secret)), false);
    await other.close();
    assert.deepEqual([keys.location, keys.created, existsSync(':memory:')], [':memory:', true, false]);
    await assert.rejects(given('A'), { code: 'NAME_TAKEN' });
  });

  it('accepts a key until it is changed, from the next check on', async () => {
    const { key: secret, apiKey: key } = await given('A');
    assert.equal(await isAccepted(secret), true);
    await keys.setEnabled(key.id, false, OPERATOR);
    assert.equal(await isAccepted(secret), false);
    await keys.setEnabled(key.id, true, OPERATOR);
    const { key: next } = await keys.rotate(key.id, { grace: '0s' }, OPERATOR);
    assert.deepEqual([await isAccepted(secret), await isAccepted(next)], [false, true]);
    await keys.delete([key.id], OPERATOR);
    assert.equal(await isAccepted(next), false);
  });

  it('takes many changes at once, and no part of a failed change', async () => {
    await Promise.all(Array.from({ length: 20 }, (_, index) => given(`Key ${index}`)));
    await assert.rejects(given('Key 3'), { code: 'NAME_TAKEN' });
    await insertKeys(
      keys,
      numberedKeys(600).map((key) => ({ ...key, name: key.name.replace('Key', 'Old') })),
    );
    const { keys: found } = await keys.list({ search: 'Old 59', first: 50 }, OPERATOR);
    assert.equal(found.length, 11);
    const result = await keys.audit.check();
    assert.equal('broken' in result.verification, false);
    for await (const _ of keys.compact());
  });

  it('serves an app', async () => {
    const { key: secret } = await keys.create({ name: 'Viewer', roles: ['VIEWER'] }, OPERATOR);
    const app = await createApp({ keys });
    const ask = (authorization: string) =>
      app.request('/graphql', {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization },
        body: JSON.stringify({ query: '{ me { name } apiKeys { totalCount } }' }),
      });
    assert.equal((await ask('Bearer nonsense')).status, 401);
    const answer = await ask(`Bearer ${secret}`);
    assert.equal(answer.status, 200);
  });

  it('is refused by commands, for which it would be gone at once', async () => {
    for (const [args, env] of [
      [['apikey', 'list', '--database', ':memory:'], {}],
      [['apikey', 'create', 'A', '--roles', 'GUEST'], { SVC_API_DATABASE: ':memory:' }],
      [['serve', '--database', ':memory:'], {}],
      [['serve', '--workers', '2'], { SVC_API_DATABASE: ':memory:' }],
    ] as const) {
      const { code, stderr } = await runCliHere(args, { env });
      assert.equal(code, 2, stderr);
      assert.match(stderr, /is ":memory:": a store in memory would be lost when the command ends/);
    }
    assert.equal(existsSync(':memory:'), false);
  });
});
