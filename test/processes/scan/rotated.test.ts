import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { testCli } from '../../support/cli.ts';
import { runCliWithInput } from '../../support/process.ts';
import { tempFolder } from '../../support/temp.ts';

describe('the secret of a finished rotation', () => {
  it('is known to scan and verify as ROTATED', async () => {
    const cli = testCli();
    const { key } = await cli.given('CI');
    for (const args of [['--grace', '1h'], ['--finish']])
      assert.equal((await cli.run(['apikey', 'rotate', 'CI', ...args])).code, 0);
    const file = join(tempFolder(), 'leaked.txt');
    writeFileSync(file, key);
    const { stdout } = await cli.run(['apikey', 'scan', file]);
    assert.match(stdout, /ROTATED {2}"CI"/);
    const verified = await runCliWithInput(key, ['apikey', 'verify', '-', '--json', '--database', cli.database]);
    const { valid, reason } = JSON.parse(verified.stdout) as { valid: boolean; reason: string };
    assert.deepEqual([valid, reason, verified.code], [false, 'rotated', 3]);
  });
});
