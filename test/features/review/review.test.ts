import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { testCli } from '../../support/cli.ts';
import { describeOnEachAndRemotely, isRemote } from '../../support/dialects.ts';
import { migratedStore } from '../../support/temp.ts';

describeOnEachAndRemotely('a review', () => {
  let cli: ReturnType<typeof testCli>;
  beforeEach(async () => {
    cli = testCli(await migratedStore());
  });
  const run = (...args: string[]) => cli.run(['apikey', ...args]);
  const json = async (...args: string[]) =>
    JSON.parse((await run(...args, '--json')).stdout) as Record<string, unknown>;
  const linesOf = (csv: string) =>
    csv
      .split('\r\n')
      .filter((line) => line.startsWith('"CI') || line.startsWith('"name'))
      .map((line) => line.slice(1, -1).split('","'));

  it('has every key with its owner, its permissions, its last use and its expiry', async () => {
    const { id } = await cli.create('CI', '--owner', 'Ada', '--tag', 'env=prod', '--expires-in', '30d');
    const [head, cells] = linesOf((await run('list', '--review', '--csv')).stdout);
    const row = Object.fromEntries(head!.map((name, at) => [name, cells![at]]));
    const {
      effective_permissions: effective,
      created_at: created,
      expires_at: ends,
      created_by: creator,
      ...rest
    } = row;
    assert.deepEqual(rest, {
      name: 'CI',
      id,
      status: 'ACTIVE',
      owner: 'Ada',
      tags: 'env=prod',
      roles: 'VIEWER',
      permissions: '',
      limits: '',
      allow_from: '',
      last_used_at: '',
      uses: '0',
      disabled_at: '',
      description: '',
      metadata: '',
    });
    assert.match(String(creator), isRemote() ? /^Caller/ : /^$/);
    assert.match(String(effective), /(^| )DOCKER:READ_ANY /);
    assert.doesNotMatch(String(effective), /DOCKER:READ_OWN|API_KEY/);
    assert.equal(Date.parse(ends!) - Date.parse(created!), 30 * 86_400_000);
    assert.match((await run('list', '--review')).stdout, /^CI\tAda\tenv=prod\tVIEWER\tACTIVE\t[^\t]+\t-\t20/m);
  });

  it('has no cell that a spreadsheet takes for a formula', async () => {
    await cli.create('CI', '--owner', '=1+1', '--description', '@SUM(A1)');
    const [head, cells] = linesOf((await run('list', '--review', '--csv')).stdout);
    const cell = (name: string) => cells![head!.indexOf(name)];
    assert.deepEqual([cell('owner'), cell('description')], ["'=1+1", "'@SUM(A1)"]);
  });

  it('is attested by the digest of its CSV, in the audit log', async () => {
    await cli.create('CI');
    const { stdout, stderr } = await run('list', '--review', '--csv', '--attest', ' All is well ');
    const sha256 = createHash('sha256').update(stdout).digest('hex');
    assert.equal(stderr, `The audit log now has your statement, with the SHA-256 of the CSV: ${sha256}\n`);
    const { entries } = (await json('log', '--action', 'review')) as { entries: Record<string, unknown>[] };
    const keys = stdout.split('\r\n').length - 2;
    assert.deepEqual(
      entries.map(({ apiKey, before, after }) => ({ apiKey, before, after })),
      [{ apiKey: null, before: null, after: { text: 'All is well', sha256, keys } }],
    );
    const reviewed = await json('list', '--review');
    assert.deepEqual([reviewed['sha256'], reviewed['attested']], [sha256, false]);
  });

  it('is of all keys: filters are refused, and --csv and --attest without --review', async () => {
    await cli.create('CI');
    for (const args of [['--review', '--owner', 'Ada'], ['--review', '--all'], ['--csv'], ['--attest', 'All is well']])
      assert.equal((await json('list', ...args))['code'], 'USAGE', args.join(' '));
    assert.deepEqual((await json('log', '--action', 'review'))['entries'], []);
  });

  for (const [what, text] of [
    ['empty', ' '],
    ['of several lines', 'a\nb'],
    ['too long', 'a'.repeat(1001)],
  ] as const)
    it(`is not attested by a text that is ${what}`, async () => {
      await cli.create('CI');
      assert.equal((await json('list', '--review', '--attest', text))['code'], 'INPUT_INVALID');
      assert.deepEqual((await json('log', '--action', 'review'))['entries'], []);
    });
});
