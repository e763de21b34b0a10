import assert from 'node:assert/strict';
import { type TestCli, testCli } from '../support/cli.ts';
import { query, startServer } from '../support/server.ts';
import { openTestKeys } from '../support/keys.ts';

describe('a duration in upper case', () => {
  let cli: TestCli;
  before(async () => {
    cli = testCli();
    await cli.given('CI deploy');
  });

  const commands = {
    'create --expires-in': ['create', '--name', 'New', '--roles', 'GUEST', '--expires-in'],
    'create --dry-run --expires-in': ['create', '--dry-run', '--name', 'New', '--roles', 'GUEST', '--expires-in'],
    '--create --expires-in': ['--create', '--name', 'New', '--roles', 'GUEST', '--expires-in'],
    'update --expires-in': ['update', 'CI deploy', '--expires-in'],
    'rotate --grace': ['rotate', 'CI deploy', '--grace'],
    'rotate --since': ['rotate', 'CI deploy', '--disable-created', '--since'],
    'log --since': ['log', '--since'],
    'log --until': ['log', '--until'],
    'exec --ttl': ['exec', '--roles', 'GUEST', '--ttl'],
  };
  for (const [what, args] of Object.entries(commands)) {
    it(`is refused by ${what}, which says what to write`, async () => {
      const { code, stderr } = await cli.run(['apikey', ...args, '1M', ...(args[0] === 'exec' ? ['--', 'true'] : [])]);
      assert.equal(code, 2);
      assert.match(
        stderr,
        /^Error: "1M" is not a (duration|time)\. .*1m is 1 minute; for months write 30d\.\nCode: \w+\n/,
      );
    });
  }

  it('is refused as a grace over GraphQL, which says what to write', async () => {
    const { keys, store } = await openTestKeys();
    const { key: secret, apiKey: key } = await keys.create({ name: 'Admin', roles: ['ADMIN'] }, 'operator');
    const server = await startServer(keys);
    const { body } = await query(
      server.url,
      secret,
      'mutation ($id: ID!) { rotateApiKey(input: { id: $id, grace: "1M" }) { key } }',
      { id: key.id },
    );
    await server.stop();
    await store.close();
    assert.equal(body.errors?.[0]?.extensions['code'], 'EXPIRY_INVALID');
    assert.match(body.errors[0].message, /for months write 30d\.$/);
  });
});
