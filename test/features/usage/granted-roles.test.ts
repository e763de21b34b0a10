import assert from 'node:assert/strict';
import { withKeys } from '../../../src/cli/with-keys.ts';
import { type TestCli, testCli } from '../../support/cli.ts';
import { describeOnEachAndRemotely } from '../../support/dialects.ts';
import { authenticate } from '../../support/keys.ts';

describeOnEachAndRemotely('the grants that a parent key needs', () => {
  let cli: TestCli;
  beforeEach(() => (cli = testCli()));
  const apikey = (...args: string[]) => cli.run(['apikey', ...args]);
  const json = async (...args: string[]) =>
    JSON.parse((await apikey(...args, '--json')).stdout) as Record<string, unknown>;

  it('have the role that a key has granted, with which it can grant it again', async () => {
    const parent = await cli.given('Maker', { roles: ['ADMIN'], permissions: ['DOCKER:READ_ANY'] });
    const grant = (name: string) =>
      withKeys({ database: cli.database }, async (keys) => {
        const result = await authenticate(keys, parent.key);
        assert.ok('principal' in result);
        await keys.create({ name, roles: ['VIEWER'] }, result.principal);
        await keys.finishActivity();
      });
    await grant('First');
    const { stdout, stderr } = await apikey('suggest', 'Maker');
    assert.equal(stdout, '--roles VIEWER --permissions API_KEY:CREATE_OWN\n');
    assert.match(stderr, /It has given other keys the role VIEWER, so it needs that role itself\./);
    const { roles, permissions } = await json('suggest', 'Maker');
    assert.deepEqual([roles, permissions], [['VIEWER'], ['API_KEY:CREATE_OWN']]);
    await apikey('update', 'Maker', '--no-roles', '--no-permissions', ...stdout.trim().split(' '));
    assert.deepEqual((await json('show', 'Maker'))['roles'], ['VIEWER']);
    await grant('Second');
    assert.equal((await apikey('suggest', 'Maker')).stdout, stdout);
  });
});
