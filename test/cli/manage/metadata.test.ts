import assert from 'node:assert/strict';
import { testCli } from '../../support/cli.ts';
import { describeOnEachAndRemotely } from '../../support/dialects.ts';
import { migratedStore } from '../../support/temp.ts';

const METADATA = { plan: 'pro', seats: 3, tenant: { id: 'a7', regions: ['eu', 'us'] }, trial: false, none: null };

describeOnEachAndRemotely('metadata on the command line', () => {
  let cli: ReturnType<typeof testCli>;
  beforeEach(async () => {
    cli = testCli(await migratedStore());
  });
  const run = (...args: string[]) => cli.run(['apikey', ...args]);
  const json = async (...args: string[]) => {
    const { stdout, code } = await run(...args, '--json');
    return { exit: code, ...(JSON.parse(stdout) as object) } as Record<string, unknown>;
  };
  const shown = async (name = 'CI') => (await json('show', name))['metadata'];

  it('is set, shown, kept by a rotation, changed and removed', async () => {
    await cli.create('CI', '--metadata', JSON.stringify(METADATA));
    assert.deepEqual(await shown(), METADATA);
    await run('rotate', 'CI');
    assert.deepEqual(await shown(), METADATA);
    const { changes } = await json('update', 'CI', '--metadata', '{"plan":"free"}');
    assert.deepEqual(changes, [{ field: 'metadata', before: METADATA, after: { plan: 'free' } }]);
    assert.deepEqual((await json('update', 'CI', '--metadata', '{"plan": "free"}'))['changes'], []);
    assert.equal((await run('update', 'CI', '--metadata', '')).stdout, 'metadata: {"plan":"free"} -> -\n');
    assert.equal(await shown(), null);
  });

  it('is in a dry run, a column, and the log', async () => {
    const dry = await json('create', '--name', 'Dry', '--roles', 'GUEST', '--metadata', '{"plan":"pro"}', '--dry-run');
    assert.deepEqual(dry['metadata'], { plan: 'pro' });
    await cli.create('CI', '--metadata', '{"plan":"pro"}');
    assert.equal((await run('list', '--columns', 'name,metadata')).stdout, 'CI\t{"plan":"pro"}\n');
    assert.match((await run('log')).stdout, /metadata: \{"plan":"pro"\}/);
  });

  it('is logged unchanged, whatever it contains', async () => {
    await cli.create('CI', '--metadata', '{"plan":"free","grace":3600000,"none":null,"z":true}');
    await run('update', 'CI', '--metadata', '{"plan":"pro","z":false}');
    assert.ok(
      (await run('log')).stdout.includes(
        'metadata: {"plan":"free","grace":3600000,"none":null,"z":true} -> {"plan":"pro","z":false}',
      ),
    );
  });

  it('is shown unchanged, whatever its names are, except for control characters', async () => {
    const metadata = { startedAt: 1, issuer: 'x', '\u009b2J': 'a\n\u009b2J' };
    await cli.create('CI', '--metadata', JSON.stringify(metadata));
    assert.deepEqual(await shown(), metadata);
    const texts = [await run('show', 'CI'), await run('list', '--columns', 'metadata'), await run('log')];
    for (const { stdout, stderr } of texts) {
      assert.equal(stderr, '');
      assert.match(stdout, /"?startedAt"?: ?1/);
      assert.doesNotMatch(stdout, /\u009b/);
    }
  });

  for (const [what, text, message] of [
    ['text that is not JSON', 'plan=pro', /^The metadata must be a JSON object, such as/],
    ['a list', '[1]', /^The metadata must be a JSON object/],
    ['a text', '"pro"', /^The metadata must be a JSON object/],
    ['more than 4 KB', JSON.stringify({ a: 'é'.repeat(2045) }), /^The metadata has 4098 bytes as JSON; at most 4096/],
    ['a large number', '{"id":12345678901234567890}', /^The metadata has the number 12345678901234567000/],
    ['a number out of range', '{"n":1e400}', /^The metadata has the number Infinity/],
    ['a secret', `{"a":"\\u0073vc_${'a'.repeat(12)}_${'b'.repeat(49)}"}`, /^The metadata contains what looks like/],
  ] as const)
    it(`${what} is refused at each door`, async () => {
      await cli.create('CI');
      for (const args of [
        ['create', '--name', 'New', '--roles', 'GUEST'],
        ['update', 'CI'],
      ]) {
        const { exit, code, error } = await json(...args, '--metadata', text);
        assert.deepEqual([exit, code], [2, 'INPUT_INVALID']);
        assert.match(String(error), message);
      }
      assert.equal(await shown(), null);
    });
});
