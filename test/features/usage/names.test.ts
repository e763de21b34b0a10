import assert from 'node:assert/strict';
import { testCli } from '../../support/cli.ts';
import { describeOnEachAndRemotely } from '../../support/dialects.ts';

describeOnEachAndRemotely('the name of a key that nearly exists', () => {
  it('gets a suggestion from commands about its use', async () => {
    const cli = testCli();
    await cli.given('CI deploy');
    for (const verb of ['usage', 'suggest']) {
      const { stdout, code } = await cli.run(['apikey', verb, 'CI deply', '--json']);
      const { error } = JSON.parse(stdout) as { error: string };
      assert.ok(error.endsWith('"CI deply". Did you mean "CI deploy"?'), `${verb}: ${error}`);
      assert.equal(code, 1);
    }
  });
});
