import assert from 'node:assert/strict';
import { testCli } from '../../support/cli.ts';

describe('a command on a server for which there is no key', () => {
  it('says how to log in', async () => {
    const server = 'http://127.0.0.1:9';
    const { stderr, code } = await testCli().run(['apikey', 'show', 'CI', '--server', server], {
      env: { SVC_API_DATABASE: undefined },
    });
    assert.equal(code, 1);
    const text = `There is no key for ${server}. Run "svc-api login --server ${server}", or set SVC_API_KEY.`;
    assert.ok(stderr.startsWith(`Error: ${text}\n`), stderr);
  });
});
