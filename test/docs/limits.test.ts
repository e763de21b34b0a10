import assert from 'node:assert/strict';
import { rateLimitFields } from '../../src/http/replies.ts';
import { testCli } from '../support/cli.ts';
import { blocksOf, pathWithCli, runBlock } from '../support/pages.ts';
import { tempFolder, tempStore } from '../support/temp.ts';

const PAGE = 'docs/limits.md';

describe(PAGE, () => {
  it('sets limits and networks, and changes them', async () => {
    const folder = tempFolder();
    const cli = testCli(tempStore());
    const [commands] = blocksOf(PAGE);
    const { code, stderr } = await runBlock(commands!, folder, {
      PATH: pathWithCli(folder),
      SVC_API_DATABASE: cli.database,
    });
    assert.equal(code, 0, stderr);
    const { stdout } = await cli.run(['apikey', 'show', 'Web shop', '--json']);
    const { limits, allowFrom } = JSON.parse(stdout) as { limits: string[]; allowFrom: string[] | null };
    assert.deepEqual({ limits, allowFrom }, { limits: ['200/m'], allowFrom: null });
  });

  it('shows the fields as they are', () => {
    const fields = rateLimitFields([
      { limit: '100/m', count: 100, unit: 'm', remaining: 42, moreIn: 600_000 },
      { limit: '10000/month', count: 10_000, unit: 'month', remaining: 9321, moreIn: 259_200_000 },
      { limit: '50000/budget', count: 50_000, unit: 'budget', remaining: 41_200, moreIn: Infinity },
    ]);
    const [shown] = blocksOf(PAGE, 'text');
    assert.equal(shown, `RateLimit-Policy: ${fields['RateLimit-Policy']}\nRateLimit: ${fields.RateLimit}\n`);
  });
});
