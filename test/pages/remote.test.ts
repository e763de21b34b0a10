import assert from 'node:assert/strict';
import { SECRET, testCli } from '../support/cli.ts';
import { blockWith, pathWithCli, runBlock } from '../support/pages.ts';
import { startServe } from '../support/serve.ts';
import { namesIn } from '../support/stored.ts';
import { tempFolder } from '../support/temp.ts';

describe('docs/reference.md, on a running server', () => {
  it('works as typed', async () => {
    const cli = testCli();
    const { key } = await cli.given('Admin', { roles: ['ADMIN'] });
    const server = await startServe(cli.database);
    const folder = tempFolder();
    const block = blockWith('SVC_API_SERVER', 'docs/reference.md');
    const typed = block.replace('https://keys.example.org', server.url).replace('svc_…', key);
    const { stdout, stderr, code } = await runBlock(typed, folder, { PATH: pathWithCli(folder) });
    await server.stop();
    assert.equal(code, 0, stderr);
    const [listed, secret] = stdout.trim().split('\n');
    assert.match(listed!, /^Admin\tACTIVE\tADMIN\t/);
    assert.match(secret!, SECRET);
    assert.deepEqual(await namesIn(cli.database), ['Admin', 'CI deploy']);
  });
});
