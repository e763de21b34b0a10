import assert from 'node:assert/strict';
import { testCli } from '../../support/cli.ts';
import { describeOnEachAndRemotely } from '../../support/dialects.ts';
import { migratedStore } from '../../support/temp.ts';

describeOnEachAndRemotely('owners and tags on the command line', () => {
  let cli: ReturnType<typeof testCli>;
  beforeEach(async () => {
    cli = testCli(await migratedStore());
  });
  const run = (...args: string[]) => cli.run(['apikey', ...args]);
  const json = async (...args: string[]) => {
    const { stdout, code } = await run(...args, '--json');
    return { exit: code, ...(JSON.parse(stdout) as object) } as Record<string, unknown>;
  };
  const names = async (...args: string[]) => {
    const { keys } = await json('list', ...args);
    return (keys as { name: string }[]).map(({ name }) => name);
  };

  it('are set, shown, changed and removed', async () => {
    await cli.create('CI', '--owner', ' Payments team ', '--tag', 'team = pay,env=prod');
    const labels = async () => {
      const { owner, tags } = await json('show', 'CI');
      return [owner, tags];
    };
    assert.deepEqual(await labels(), ['Payments team', ['env=prod', 'team=pay']]);
    const update = async (...args: string[]) => (await run('update', 'CI', ...args)).stdout;
    assert.equal(
      await update('--owner', 'Ada', '--tag', 'env=dev'),
      'owner: Payments team -> Ada\ntags: env=prod, team=pay -> env=dev\n',
    );
    assert.equal(await update('--owner', '', '--no-tags'), 'owner: Ada -> -\ntags: env=dev -> -\n');
    assert.deepEqual(await labels(), [null, []]);
    assert.deepEqual(await names('--tag', 'env=dev'), []);
    assert.deepEqual(await names('--owner', 'ada'), []);
  });

  for (const [what, args, message] of [
    ['an owner of several lines', ['--owner', 'a\nb'], /^The owner must not contain control characters/],
    ['a long owner', ['--owner', 'a'.repeat(201)], /^The owner is 201 characters long; at most 200 are allowed\./],
    ['a tag without a value', ['--tag', 'env='], /^"env=" is not a tag\. Write key=value/],
    ['a tag without a key', ['--tag', '=prod'], /^"=prod" is not a tag/],
    ['an empty tag', ['--tag', ''], /^"" is not a tag/],
    ['a strange key', ['--tag', 'a b=c'], /^The key of the tag "a b=c" is not up to 50 letters/],
    ['a key that is given twice', ['--tag', 'a=b,a=c'], /^The tag a is given twice: a=b and a=c\./],
    ['a long value', ['--tag', `a=${'b'.repeat(151)}`], /^The value of the tag a is 151 characters long/],
    ['17 tags', ['--tag', Array.from({ length: 17 }, (_, at) => `a${at}=b`).join()], /^17 tags are given; at most 16/],
  ] as const)
    it(`are refused: ${what}`, async () => {
      const { exit, error } = await json('create', 'CI', '--roles', 'GUEST', ...args);
      assert.equal(exit, 2);
      assert.match(String(error), message);
      assert.deepEqual(await names(), []);
    });

  it('select keys: an owner in any case, a tag exactly', async () => {
    await cli.create('A', '--owner', 'Payments team', '--tag', 'env=prod,team=pay');
    await cli.create('B', '--owner', 'PAYMENTS TEAM', '--tag', 'env=prod');
    await cli.create('C', '--tag', 'env=Prod');
    assert.deepEqual(await names('--owner', 'payments Team'), ['A', 'B']);
    assert.deepEqual(await names('--tag', 'env=prod'), ['A', 'B']);
    assert.deepEqual(await names('--tag', 'team=pay,env=prod'), ['A']);
    assert.deepEqual(await names('--tag', 'env=prod', '--limit', '1'), ['A']);
    assert.deepEqual(await names('--owner', 'payments'), []);
    const { stdout } = await run('list', '--columns', 'name,owner,tags', '--tag', 'team=pay');
    assert.equal(stdout, 'A\tPayments team\tenv=prod, team=pay\n');
    const { exit, error } = await json('list', '--tag', 'env');
    assert.deepEqual([exit, String(error).split('.')[0]], [2, '"env" is not a tag']);
  });

  it('together with expiry, use and creators select and sort keys; the exit code says whether there are any', async () => {
    await cli.create('Key 10', '--expires-in', '20d');
    await cli.create('Key 9', '--expires-in', '2d');
    await cli.create('Key 1');
    assert.deepEqual(await names('--expires-within', '14d'), ['Key 9']);
    assert.deepEqual(await names('--sort', 'name'), ['Key 1', 'Key 9', 'Key 10']);
    assert.deepEqual(await names('--sort', 'expires', '--limit', '2'), ['Key 9', 'Key 10']);
    assert.deepEqual(await names('--unused-for', '90d'), []);
    assert.equal((await run('list', '--expires-within', '1h', '--exit-code')).code, 0);
    assert.equal((await run('list', '--expires-within', '14d', '--exit-code', '--sort', 'name')).code, 1);
    assert.deepEqual(await names('--parent', 'Key 1'), []);
    assert.equal((await json('list', '--parent', 'Nobody'))['exit'], 1);
    assert.match(
      String((await json('list', '--unused-for', '90'))['error']),
      /^--unused-for is "90", which is not a duration/,
    );
    assert.match(String((await json('list', '--sort', 'size'))['error']), /^Keys cannot be sorted by "size"\./);
  });

  it('select the keys to change, all of them or none, after a confirmation', async () => {
    await cli.create('A', '--tag', 'env=preview');
    await cli.create('B', '--tag', 'env=preview');
    await cli.create('C');
    const select = ['--tag', 'env=preview'];
    const refused = await json('disable', ...select);
    assert.equal(refused['exit'], 2);
    assert.match(String(refused['error']), /^Pass --yes to disable the keys, or --dry-run to see which/);
    assert.equal(
      (await run('disable', ...select, '--dry-run')).stdout,
      '~ disable "A"\n~ disable "B"\nPlan: 2 API keys to disable, never used.\n',
    );
    assert.deepEqual(await names('--status', 'disabled'), []);
    const { keys, ...disabled } = await json('disable', ...select, '--yes');
    assert.deepEqual(disabled, { exit: 0, dryRun: false, unchanged: 0, total: 2, lastUsedAt: null });
    assert.deepEqual(
      (keys as { name: string }[]).map(({ name }) => name),
      ['A', 'B'],
    );
    assert.deepEqual(await names('--status', 'disabled'), ['A', 'B']);
    assert.equal(
      (await run('disable', ...select, '--yes')).stdout,
      'There is nothing to do: all matching keys are already in that state.\n',
    );
    assert.equal(
      (await run('update', '--where-tag', 'env=preview', '--owner', 'Ada', '--allow-from', '10.0.0.0/8', '--yes'))
        .stdout,
      'Successfully updated 2 API keys\n',
    );
    assert.deepEqual((await json('show', 'B'))['allowFrom'], ['10.0.0.0/8']);
    assert.equal((await json('update', '--where-owner', 'ada', '--rate', '1/s', '--yes'))['code'], 'USAGE');
    assert.equal((await json('update', '--where-owner', 'ada', '--no-roles', '--yes'))['exit'], 2);
    assert.equal((await json('update', '--owner', 'ada', '--description', 'x', '--yes'))['code'], 'USAGE');
    for (const filter of ['--where-search', '--search'])
      assert.match((await run('update', filter, 'b', '--owner', 'Eve', '--dry-run')).stdout, /^~ update "B"\n/);
    assert.match(
      String((await json('update', '--unused-for', '90', '--owner', 'Eve', '--yes'))['error']),
      /^--where-unused-for is "90", which is not a duration/,
    );
    assert.equal((await run('delete', '--owner', 'ada', '--yes')).stdout, 'Successfully deleted 2 API keys\n');
    assert.deepEqual(await names(), ['C']);
    const message = 'No API keys found to delete: none matches.';
    const { exit, ...nothing } = await json('delete', '--owner', 'ada', '--yes');
    assert.deepEqual([exit, nothing], [0, { deleted: 0, message }]);
    assert.equal((await run('delete', '--owner', 'ada', '--yes')).stdout, `${message}\n`);
  });

  it('select no keys if a name is given, which has a dry run of its own', async () => {
    await cli.create('A', '--tag', 'a=b');
    assert.match(
      String((await json('disable', 'A', '--tag', 'a=b'))['error']),
      /^--tag selects keys, but a name is given/,
    );
    await cli.create('B');
    for (const verb of ['disable', 'delete']) {
      const { exit, ...plan } = await json(verb, 'A', '--dry-run');
      assert.deepEqual([exit, (plan['keys'] as { name: string }[]).map(({ name }) => name)], [0, ['A']]);
      assert.match((await run(verb, '--name', 'B', '--dry-run')).stdout, new RegExp(`^. ${verb} "B"\nPlan: 1 API key`));
      assert.equal((await json(verb, 'Missing', '--dry-run'))['exit'], 1);
      assert.match(String((await json(verb, '--dry-run'))['error']), /^Which keys\? Pass a name, or a filter/);
    }
    assert.deepEqual((await json('disable', 'A'))['changed'], true);
    assert.equal((await json('disable', 'A', '--dry-run'))['unchanged'], 1);
    assert.match(
      String((await json('update', 'A', '--owner', 'Ada', '--dry-run'))['error']),
      /^--dry-run shows which keys filters select\./,
    );
    assert.deepEqual(await names(), ['A', 'B']);
  });
});
