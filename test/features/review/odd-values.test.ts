import assert from 'node:assert/strict';
import { testCli } from '../../support/cli.ts';

describe('a review', () => {
  it('has the metadata of a key', async () => {
    const cli = testCli();
    await cli.create('CI', '--metadata', '{"plan":"pro"}');
    assert.match((await cli.run(['apikey', 'list', '--review', '--csv'])).stdout, /"\{""plan"":""pro""\}"/);
  });

  it('escapes control characters in the name of an owner', async () => {
    const cli = testCli();
    await cli.create('T', '--owner', 'A\u202eB');
    const { stdout, code } = await cli.run(['apikey', 'list', '--review']);
    assert.equal(code, 0);
    assert.ok(stdout.includes('A<U+202E>B') && !stdout.includes('\u202e'), stdout);
  });
});
