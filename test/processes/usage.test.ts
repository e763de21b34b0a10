import assert from 'node:assert/strict';
import type { UsageJson } from '../../src/features/usage/cli/usage-view.ts';
import { testCli } from '../support/cli.ts';
import { describeOnEach } from '../support/dialects.ts';
import { type ServeProcess, startServe } from '../support/serve.ts';
import { query } from '../support/server.ts';

describeOnEach('the use of keys by the hour, written by two servers', () => {
  it('adds up, of one that is killed until its last seconds, and is never more than what else is counted', async () => {
    const cli = testCli();
    const { key } = await cli.given('CI deploy');
    const servers = [await startServe(cli.database), await startServe(cli.database)] as [ServeProcess, ServeProcess];
    const sent = [0, 0];
    const send = async (index: 0 | 1, times: number) => {
      for (let time = 0; time < times; time += 1) {
        await query(servers[index].url, key, '{ online }');
        sent[index]! += 1;
      }
    };
    const countsOf = async () => {
      const { stdout } = await cli.run(['apikey', 'usage', 'CI deploy', '--json']);
      const shown = await cli.run(['apikey', 'show', 'CI deploy', '--json']);
      return {
        accepted: (JSON.parse(stdout) as UsageJson).totals.accepted,
        uses: (JSON.parse(shown.stdout) as { uses: number }).uses,
      };
    };
    await send(1, 30);
    await send(0, 5);
    // Continues until the first worker's counts are written.
    let written = 0;
    while (written < 35) {
      await send(0, 1);
      const { accepted, uses } = await countsOf();
      assert.ok(accepted <= uses && uses <= sent[0]! + sent[1]!, `${accepted}, ${uses}`);
      written = accepted;
    }
    await servers[0].stop('SIGKILL');
    await send(1, 20);
    await servers[1].stop();
    const { accepted, uses } = await countsOf();
    assert.equal(accepted, uses);
    assert.ok(uses >= written + 20 && uses <= sent[0]! + 50, `${uses} of ${sent.join(' and ')}`);
  });
});
