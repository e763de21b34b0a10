import assert from 'node:assert/strict';
import { testCli } from '../../support/cli.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { migratedStore } from '../../support/temp.ts';

const METADATA = { plan: 'pro', seats: 3, tenant: { id: 'a7', regions: ['eu', 'us'] }, trial: false, none: null };

describeOnEach('exported keys', () => {
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

  it('have their limits and networks elsewhere', async () => {
    await cli.create('CI', '--rate', '100/m', '--rate', '5/month', '--allow-from', '10.0.0.0/8,2001:DB8::/32');
    const { stdout } = await cli.run(['apikey', 'export', '--with-digests']);
    const other = testCli(await migratedStore());
    assert.equal((await other.run(['apikey', 'import'], { input: stdout })).code, 0);
    assert.equal((await other.run(['apikey', 'export', '--with-digests'])).stdout, stdout);
  });

  it('have their metadata elsewhere', async () => {
    await cli.create('CI', '--metadata', JSON.stringify(METADATA));
    const { stdout: lines } = await run('export', '--with-digests');
    await run('delete', 'CI', '--yes');
    await cli.run(['apikey', 'import', '-'], { input: lines });
    assert.deepEqual(await shown(), METADATA);
    const line = JSON.stringify({ ...(JSON.parse(lines) as object), name: 'Other', id: undefined, metadata: 'pro' });
    const { stdout } = await cli.run(['apikey', 'import', '-', '--json'], { input: line });
    assert.match(stdout, /\\"metadata\\" (?:must be|is not) a JSON object/);
  });
});
