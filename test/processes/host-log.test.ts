import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { finished, ROOT } from '../support/process.ts';
import { tempStore } from '../support/temp.ts';

describe('the log of bearerAuth', () => {
  it('has all refusals once its host has ended, which it does not keep waiting', async () => {
    const child = spawn(process.execPath, [join(ROOT, 'test/support/host-child.ts'), tempStore()]);
    const { stdout, stderr, code } = await finished(child);
    assert.deepEqual([code, stderr], [0, '']);
    const lines = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { message: string; count?: number });
    assert.deepEqual(
      lines.map(({ message, count }) => [message, count]),
      [
        ['key refused', undefined],
        ['key refused', 2],
      ],
    );
  });
});
