import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { finished, ROOT } from '../support/process.ts';

describe('the memory of a verified key', () => {
  it('is less than 1 KB, as docs/operations.md says', async () => {
    const child = join(ROOT, 'test/support/verified-key-child.ts');
    const { stdout, stderr } = await finished(spawn(process.execPath, ['--expose-gc', child]));
    const bytes = Number(stdout);
    assert.ok(bytes > 100 && bytes < 1024, `${stdout} bytes\n${stderr}`);
  });
});
