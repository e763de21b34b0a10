import assert from 'node:assert/strict';
import { withKeys } from '../../../src/cli/with-keys.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { type CreatedKey, type TestCli, testCli } from '../../support/cli.ts';
import { describeOnEachAndRemotely } from '../../support/dialects.ts';
import { authenticate } from '../../support/keys.ts';

describeOnEachAndRemotely('the command line and the parent key', () => {
  let cli: TestCli;
  let parent: CreatedKey;
  let child: CreatedKey;
  beforeEach(async () => {
    cli = testCli();
    parent = await cli.given('Parent', { roles: ['ADMIN'] });
    child = await withKeys({ database: cli.database }, async (keys) => {
      const result = await authenticate(keys, parent.key);
      assert.ok('principal' in result);
      const { key: secret, apiKey: key } = await keys.create({ name: 'Child', roles: ['ADMIN'] }, result.principal);
      return { key: secret, name: key.name, id: key.id };
    });
  });
  const apikey = (...args: string[]) => cli.run(['apikey', ...args]);
  const json = async (...args: string[]): Promise<Record<string, unknown>> => {
    const { stdout, code } = await apikey(...args, '--json');
    return { code, ...(JSON.parse(stdout) as object) };
  };

  it('show names the parent key that takes something away, and counts it in the status', async () => {
    assert.equal('limitedBy' in (await json('show', 'Child')), false);
    await apikey('update', 'Parent', '--no-roles', '--permissions', 'DOCKER:READ_ANY');
    await apikey('disable', 'Parent');
    const shown = await json('show', 'Child');
    assert.deepEqual(shown['effectivePermissions'], ['DOCKER:READ_ANY', 'DOCKER:READ_OWN']);
    assert.equal(shown['status'], 'DISABLED');
    const [limit] = shown['limitedBy'] as { id: string; name: string; status: string; permissions: string[] }[];
    assert.deepEqual([limit!.id, limit!.name, limit!.status], [parent.id, 'Parent', 'DISABLED']);
    assert.ok(limit!.permissions.includes('DOCKER:UPDATE_ANY'));
    assert.match(
      (await apikey('show', 'Child')).stdout,
      /^limitedBy +"Parent" is DISABLED, lacks .*DOCKER:UPDATE_ANY/m,
    );
    assert.match((await apikey('list')).stdout, /^Child\tDISABLED\t/m);
    assert.match((await apikey('list', '--status', 'active', '--search', 'child')).stderr, /No API keys found/);
  });

  it('can says no, and which parent key forbids it', async () => {
    await apikey('update', 'Parent', '--roles', 'GUEST');
    const denied = await apikey('explain', 'Child', 'DOCKER:UPDATE_ANY');
    assert.deepEqual(
      [denied.stdout, denied.code],
      ['no: granted by role ADMIN, but its parent key "Parent" lacks it\n', 4],
    );
    const { deniedBy, allowed } = await json('explain', 'Child', 'DOCKER:UPDATE_ANY');
    assert.deepEqual([deniedBy, allowed], [{ id: parent.id, name: 'Parent' }, false]);
  });

  it('verify reports that a parent key is disabled, or has expired', async () => {
    await apikey('disable', 'Parent');
    const found = await withKeys({ database: cli.database }, (keys) => keys.identify(child.key, OPERATOR));
    assert.equal('apiKey' in found && found.status, 'DISABLED');
  });

  it('update --detach makes it independent, once', async () => {
    await apikey('disable', 'Parent');
    const { stdout, code } = await apikey('update', 'Child', '--detach');
    assert.deepEqual([stdout, code], ['API key "Child" has no creator now, so all its grants count\n', 0]);
    assert.equal((await json('show', 'Child'))['status'], 'ACTIVE');
    const again = await json('update', 'Child', '--detach');
    assert.deepEqual([again['changes'], again['code']], [[], 0]);
    assert.equal((await apikey('update', 'Nobody', '--detach')).code, 1);
    for (const other of [['--owner', 'Ada'], ['--owner', ''], ['--no-roles'], ['--unused-for', '1d'], ['--dry-run']])
      assert.equal((await json('update', 'Child', '--detach', ...other))['code'], 'USAGE', other[0]);
  });

  it('rotate names what the key has created, and disables it with --disable-created', async () => {
    const first = await apikey('rotate', 'Parent', '--grace', '0s');
    assert.match(first.stderr, /^It has created "Child"\. After a leak, disable them: --disable-created/);
    const second = await apikey('rotate', 'Parent', '--grace', '0s', '--disable-created', '--since', '1h');
    assert.match(second.stderr, /^Its child keys are disabled now: "Child"\.\n/);
    assert.equal((await json('show', 'Child'))['status'], 'DISABLED');
    const wrong = await json('rotate', 'Parent', '--since', '1h');
    assert.equal(wrong['code'], 'USAGE');
    for (const since of ['yesterday', '2999-01-01']) {
      const unreadable = await apikey('rotate', 'Parent', '--disable-created', '--since', since);
      assert.deepEqual([unreadable.stdout, unreadable.code], ['', 2]);
    }
    assert.equal((await apikey('enable', 'Child')).code, 0);
    const none = await apikey(
      'rotate',
      'Parent',
      '--grace',
      '0s',
      '--disable-created',
      '--since',
      new Date().toISOString(),
    );
    assert.match(none.stderr, /^It had created "Child" before --since: they are not disabled\.\n/);
  });
});
