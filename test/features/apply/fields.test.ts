import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { testCli } from '../../support/cli.ts';
import { describeOnEachAndRemotely } from '../../support/dialects.ts';
import { migratedStore, tempFolder } from '../../support/temp.ts';

describeOnEachAndRemotely('declared keys', () => {
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

  it('have limits and networks; without them, there are none', async () => {
    const file = join(tempFolder(), 'keys.yaml');
    const apply = async (fields: string, ...args: string[]) => {
      writeFileSync(file, `keys:\n  - name: CI\n    roles: [GUEST]\n${fields}`);
      return cli.run(['apikey', 'apply', '-f', file, ...args]);
    };
    const fields = '    limits: [5/month, 100/m, 7/budget]\n    allowFrom: [10.0.0.0/8]\n';
    const { stdout } = await apply(fields, '--secrets-dir', tempFolder());
    assert.match(
      stdout,
      /^\+ create "CI"\n    roles: GUEST\n    limits: 100\/m, 5\/month, 7\/budget\n    allowFrom: 10\.0\.0\.0\/8\n/,
    );
    assert.equal((await apply(fields, '--dry-run')).code, 0, 'nothing to change');
    assert.match(
      (await apply('')).stdout,
      /^~ update "CI"\n    limits: 100\/m, 5\/month, 7\/budget -> -\n    allowFrom: 10\.0\.0\.0\/8 -> -\n/,
    );
    const faults = await apply('    limits: [100/m, 5/x, 1/m]\n    allowFrom: []\n');
    assert.deepEqual(
      faults.stderr.split('\n').filter((line) => line.includes('keys.yaml')),
      [
        `Error: ${file}:4:13: 100/m and 1/m are two limits a minute. Leave one of them out.`,
        `       ${file}:4:21: "5/x" is not a limit. Write a number and s, m, h, d or month, such as 100/m.`,
        `       ${file}:5:16: The list of networks is empty. Give at least one, or leave it out to allow all networks.`,
      ],
    );
  });

  it('have owners and tags, which can be changed and removed', async () => {
    const file = join(tempFolder(), 'keys.yaml');
    const apply = async (fields: string) => {
      const text = `keys:\n- name: A\n  roles: [GUEST]\n${fields}`;
      writeFileSync(file, text);
      const { stdout, code } = await run('apply', '--file', file, '--json');
      return { exit: code, ...(JSON.parse(stdout) as object) } as Record<string, unknown>;
    };
    await cli.create('A');
    await apply('  owner: Ada\n  tags: [b=2, a=1]\n');
    const shown = await json('show', 'A');
    assert.deepEqual([shown['owner'], shown['tags']], ['Ada', ['a=1', 'b=2']]);
    assert.deepEqual((await apply('  owner: Ada\n  tags: [a=1, b=2]\n'))['unchanged'], 1);
    assert.match(String((await apply('  tags: [a]\n'))['error']), /"a" is not a tag/);
    await apply('');
    assert.deepEqual((await json('list', '--tag', 'a=1'))['keys'], []);
    assert.equal((await json('show', 'A'))['owner'], null);
  });

  it('have metadata, and faults in it are reported', async () => {
    const folder = tempFolder();
    const declare = (text: string) => {
      writeFileSync(join(folder, 'keys.yaml'), `keys:\n  - name: CI\n    roles: [GUEST]\n    metadata: ${text}\n`);
      return json('apply', '-f', join(folder, 'keys.yaml'), '--secrets-dir', join(folder, 'secrets'));
    };
    await declare('{ plan: pro }');
    assert.deepEqual(await shown(), { plan: 'pro' });
    const { changes: none, unchanged } = await declare('{ plan: pro }');
    assert.deepEqual([none, unchanged], [[], 1]);
    const { changes } = await declare('{ plan: free }');
    assert.deepEqual((changes as { changes: object }[])[0]!.changes, [
      { field: 'metadata', before: { plan: 'pro' }, after: { plan: 'free' } },
    ]);
    assert.match(String((await declare('pro'))['error']), /:4:15: The metadata must be a JSON object/);
    for (const [text, message] of [
      ['!!timestamp 2026-01-01', /:4:15: Unresolved tag/],
      ['!!omap [ plan: pro ]', /:4:15: Unresolved tag/],
      ['!!binary aGk=', /:4:15: Unresolved tag/],
      ['{ on: 2026-01-01, n: .inf }', /:4:15: The metadata has the number Infinity/],
    ] as const)
      assert.match(String((await declare(text))['error']), message, text);
    assert.deepEqual(await shown(), { plan: 'free' });
    await declare('null');
    assert.equal(await shown(), null);
  });
});
