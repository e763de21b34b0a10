import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { withKeys } from '../../src/cli/with-keys.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { testCli } from '../support/cli.ts';
import { describeOnEach } from '../support/dialects.ts';
import { startCli } from '../support/process.ts';
import { migratedStore } from '../support/temp.ts';

describeOnEach('rotate that is killed at any moment', () => {
  it('leaves a known secret that works, even without a grace', async () => {
    const cli = testCli(await migratedStore());
    let { key: known } = await cli.given('CI deploy');
    for (let round = 0; round < 12; round += 1) {
      const child = startCli(['apikey', 'rotate', 'CI deploy', '--grace', '0s', '--database', cli.database]);
      const written = await killedAfter(child, round);
      const wasWritten = written !== '';
      if (wasWritten) known = written.trim();
      const found = await withKeys({ database: cli.database }, (keys) => keys.identify(known, OPERATOR));
      assert.ok(
        'apiKey' in found && found.status === 'ACTIVE',
        `round ${round}: ${wasWritten ? 'the new one was written' : 'nothing was written'}`,
      );
      await cli.run(['apikey', 'rotate', 'CI deploy', wasWritten ? '--finish' : '--rollback']);
    }
  });
});

/** Kills a rotation: early, around its transaction, or after its output. @returns the output */
async function killedAfter(child: ChildProcess, round: number): Promise<string> {
  let written = '';
  child.stdout!.setEncoding('utf8').on('data', (text: string) => {
    written += text;
    if (round % 3 === 0) child.kill('SIGKILL');
  });
  const timer = round % 3 === 0 ? undefined : setTimeout(() => child.kill('SIGKILL'), 60 + round * 12);
  await once(child, 'close');
  clearTimeout(timer);
  return written;
}
