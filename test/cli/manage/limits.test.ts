import assert from 'node:assert/strict';
import { testCli } from '../../support/cli.ts';
import { describeOnEachAndRemotely } from '../../support/dialects.ts';
import { migratedStore } from '../../support/temp.ts';
import { authenticate } from '../../support/keys.ts';

const HELD = ['--rate', '100 / m', '--rate', '5/month', '--allow-from', '10.0.0.0/8,2001:DB8::/32'];

describeOnEachAndRemotely('limits and networks on the command line', () => {
  let cli: ReturnType<typeof testCli>;
  beforeEach(async () => {
    cli = testCli(await migratedStore());
  });
  const json = async (...args: string[]) => {
    const { stdout, code } = await cli.run(['apikey', ...args, '--json']);
    return { code, ...(JSON.parse(stdout) as object) } as Record<string, unknown>;
  };
  const held = async (name = 'CI') => {
    const { limits, allowFrom } = await json('show', name);
    return { limits, allowFrom };
  };

  it('are set when a key is created, by either form, and said', async () => {
    const { stderr, code } = await cli.run(['apikey', 'create', 'CI', '--roles', 'GUEST', ...HELD]);
    assert.equal(code, 0);
    assert.match(
      stderr,
      / with roles GUEST\. It [^.]+, is limited to 100\/m, 5\/month and can be used only from 10\.0\.0\.0\/8 or 2001:db8::\/32\. /,
    );
    const expected = { limits: ['100/m', '5/month'], allowFrom: ['10.0.0.0/8', '2001:db8::/32'] };
    assert.deepEqual(await held(), expected);
    await cli.create('Flags', ...HELD);
    assert.deepEqual(await held('Flags'), expected);
    const { limits, allowFrom } = await json('create', 'Preview', '--roles', 'GUEST', ...HELD, '--dry-run');
    assert.deepEqual({ limits, allowFrom }, expected);
  });

  it('are changed and removed, and their former values shown', async () => {
    await cli.create('CI');
    assert.deepEqual(await held(), { limits: [], allowFrom: null });
    const update = async (...args: string[]) => {
      const { stdout, stderr } = await cli.run(['apikey', 'update', 'CI', ...args]);
      return stdout + stderr;
    };
    assert.equal(await update(...HELD), 'limits: - -> 100/m, 5/month\nallowFrom: - -> 10.0.0.0/8, 2001:db8::/32\n');
    assert.equal(await update('--rate', '50/m,5/month'), 'limits: 100/m, 5/month -> 50/m, 5/month\n');
    assert.equal(await update('--rate', '5/month,50/m'), 'Nothing has changed.\n');
    assert.equal(
      await update('--no-limits', '--no-allow-from'),
      'limits: 50/m, 5/month -> -\nallowFrom: 10.0.0.0/8, 2001:db8::/32 -> -\n',
    );
    const { changes } = await json('update', 'CI', '--rate', '1/h');
    assert.deepEqual(changes, [{ field: 'limits', before: [], after: ['1/h'] }]);
  });

  it('are refused together where they are wrong, and nothing is done', async () => {
    const wrong = ['--rate', '100/M', '--rate', '', '--allow-from', '10.1.2.3/8'];
    const { code, error } = await json('create', 'CI', '--roles', 'GUEST', ...wrong);
    assert.deepEqual(
      [code, error],
      [
        'LIMIT_INVALID',
        '"100/M" is not a limit. Units are lower case: write 100/m for a minute, or 100/month for a month of 30 days. ' +
          'A limit is empty. Write a number and s, m, h, d or month, such as 100/m. ' +
          '"10.1.2.3/8" has bits beyond its first 8. Write 10.0.0.0/8, or 10.1.2.3 for the address.',
      ],
    );
    await cli.create('CI');
    for (const [flags, expected] of [
      [['--rate', '1/m,2/m'], 'LIMIT_INVALID'],
      [['--allow-from', 'nowhere'], 'NETWORK_INVALID'],
      [['--rate', '1/m', '--no-limits'], 'USAGE'],
      [['--allow-from', '::1', '--no-allow-from'], 'USAGE'],
    ] as const)
      assert.deepEqual([(await json('update', 'CI', ...flags))['code'], flags], [expected, flags]);
    const deleting = await cli.run(['apikey', '--delete', '--name', 'CI', '--rate', '1/m']);
    assert.match(deleting.stderr, /--rate cannot be used with --delete/);
  });

  it('may be for good: a budget and a number of uses are shown with what is left', async () => {
    const { stderr } = await cli.run('apikey create CI --roles GUEST --rate 9/m --budget 1000 --uses 1'.split(' '));
    assert.match(stderr, /limited to 9\/m, 1000\/budget, 1\/uses/);
    const budgets = [
      { limit: '1000/budget', left: 1000 },
      { limit: '1/uses', left: 1 },
    ];
    assert.deepEqual((await json('show', 'CI'))['budgets'], budgets);
    assert.deepEqual(((await json('list'))['keys'] as { budgets: object }[])[0]!.budgets, budgets);
    const shown = await cli.run(['apikey', 'show', 'CI']);
    assert.match(shown.stdout, /^budgets +1000 left of 1000\/budget, 1 left of 1\/uses$/m);
    const listed = await cli.run(['apikey', 'list', '--columns', 'name,budgets']);
    assert.equal(listed.stdout, 'CI\t1000 left of 1000/budget, 1 left of 1/uses\n');
  });

  it('are changed separately: others stay, and --no-limits removes all', async () => {
    await cli.create('CI', '--rate', '9/m', '--budget', '1000', '--uses', '3');
    const update = async (text: string) => (await cli.run(['apikey', 'update', 'CI', ...text.split(' ')])).stdout;
    const [before, after] = ['9/m, 1000/budget, 3/uses', '9/m, 2000/budget, 3/uses'];
    assert.equal(await update('--budget 2000'), `limits: ${before} -> ${after}\n`);
    assert.equal(await update('--rate 5/h,6/d'), `limits: ${after} -> 5/h, 6/d, 2000/budget, 3/uses\n`);
    assert.equal(await update('--uses 3'), 'Nothing has changed.\n');
    assert.equal(await update('--no-limits'), 'limits: 5/h, 6/d, 2000/budget, 3/uses -> -\n');
    for (const [args, expected] of [
      ['update CI --budget 5 --no-limits', 'USAGE'],
      ['update CI --uses 0', 'LIMIT_INVALID'],
      ['update CI --uses many', 'INPUT_INVALID'],
      ['create New --roles GUEST --budget 3000000000', 'LIMIT_INVALID'],
    ] as const)
      assert.deepEqual([args, (await json(...args.split(' ')))['code']], [args, expected]);
    const temporary = await cli.run('apikey exec --roles GUEST --uses 0 -- true'.split(' '));
    assert.match(temporary.stderr, /"0\/uses" allows nothing/);
  });

  it('are columns of the list, where these are asked for', async () => {
    await cli.create('CI', ...HELD);
    const { stdout } = await cli.run(['apikey', 'list', '--columns', 'name,limits,allow-from']);
    assert.equal(stdout, 'CI\t100/m, 5/month\t10.0.0.0/8, 2001:db8::/32\n');
  });

  it('of the parent keys of one are shown with it', async () => {
    const parent = await cli.given('Parent', { roles: ['ADMIN'], limits: ['100/m'], allowFrom: ['10.0.0.0/8'] });
    const { openKeys } = await import('../../../src/service/open-keys.ts');
    const keys = await openKeys({ database: cli.database });
    const found = await authenticate(keys, parent.key);
    assert.ok('principal' in found);
    await keys.create({ name: 'Child', roles: ['GUEST'] }, found.principal);
    await keys.close();
    const { stdout } = await cli.run(['apikey', 'show', 'Child']);
    const words = 'is limited to 100/m together with its child keys, can be used only from 10.0.0.0/8';
    assert.match(stdout, new RegExp(`^limitedBy +"Parent" ${words}$`, 'm'));
    const { limitedBy } = await json('show', 'Child');
    const [limit] = limitedBy as { name: string; limits: string[]; allowFrom: string[] }[];
    assert.deepEqual([limit?.name, limit?.limits, limit?.allowFrom], ['Parent', ['100/m'], ['10.0.0.0/8']]);
  });
});
