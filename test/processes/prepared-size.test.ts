import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { finished, ROOT } from '../support/process.ts';

describe('prepared operations', () => {
  for (const shape of ['leaves', 'resolvers', 'lists', 'names', 'literals', 'comments', 'fragments', 'conditions'])
    it(`take no more memory than is counted for them: ${shape}`, async () => {
      const child = join(ROOT, 'test/support/prepared-child.ts');
      const { stdout, stderr } = await finished(spawn(process.execPath, ['--expose-gc', child, shape]));
      assert.ok(Number(stdout) < 1, `${stdout} times as much\n${stderr}`);
      assert.notEqual(stdout, '', stderr);
    });
});
