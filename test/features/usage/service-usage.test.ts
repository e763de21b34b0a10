import assert from 'node:assert/strict';
import { createPrincipal } from '../../support/keys.ts';
import { query, startTestService } from '../../support/server.ts';

describe('the use of all keys, over GraphQL', () => {
  it('counts all requests together, for callers that may read all keys', async () => {
    const test = await startTestService();
    const { secret: admin } = await createPrincipal(test.keys, { name: 'Admin', roles: ['ADMIN'] });
    test.time.now += 1000;
    const ask = async (secret: string, document: string) => (await query(test.url, secret, document)).body;
    await ask(admin, '{ online }');
    const { secret } = await createPrincipal(test.keys, { name: 'Guest', roles: ['GUEST'] });
    await ask(secret, '{ info { name } }');
    await test.keys.finishActivity();
    // Creating each one also made a request.
    const { data } = await ask(admin, '{ serviceUsage { start accepted forbidden limited refused } }');
    const start = new Date(test.time.now - (test.time.now % 3_600_000)).toISOString();
    assert.deepEqual(data!['serviceUsage'], [{ start, accepted: 3, forbidden: 1, limited: 0, refused: 0 }]);
    const { errors } = await ask(secret, '{ serviceUsage { accepted } }');
    assert.deepEqual(
      errors?.map(({ extensions }) => extensions['code']),
      ['FORBIDDEN'],
    );
    await test.stop();
  });
});
