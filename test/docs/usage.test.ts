import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { usagePlot } from '../../src/features/usage/cli/usage-view.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { NO_REQUESTS, PERIOD_MS } from '../../src/keys/key/use.ts';
import { firstKept, KEPT_DAYS, Usage } from '../../src/features/usage/usage.ts';
import { testCli } from '../support/cli.ts';
import { openTestKeys } from '../support/keys.ts';
import { blockWith, pathWithCli, runBlock } from '../support/pages.ts';
import { ROOT } from '../support/process.ts';
import { query, startTestService } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const PAGE = 'docs/observability.md';

describe(PAGE, () => {
  const text = readFileSync(join(ROOT, PAGE), 'utf8').replaceAll(/\s+/g, ' ');

  it('has commands that work', async () => {
    const [folder, cli] = [tempFolder(), testCli()];
    await cli.given('CI deploy');
    const env = { PATH: pathWithCli(folder), SVC_API_DATABASE: cli.database };
    const { code, stderr, stdout } = await runBlock(blockWith('--by day', PAGE), folder, env);
    assert.equal(code, 0);
    assert.match(stderr, /^(API key "CI deploy" made no requests from \S+Z to \S+Z\. .*\n){2}$/);
    assert.match(stdout, /"by": "HOUR"/);
  });

  it('shows the output of a terminal', () => {
    const from = Date.UTC(2030, 0, 1);
    const period = (hour: number, counts: object) => ({ start: from + hour * 3_600_000, ...NO_REQUESTS, ...counts });
    const periods = [
      period(0, { accepted: 1200 }),
      period(1, { accepted: 600, refused: 3 }),
      period(23, { accepted: 7 }),
    ];
    const shown = usagePlot({ by: 'HOUR', from, to: from + 86_400_000, periods }, { columns: 80, showsUnicode: true });
    assert.equal(blockWith('a column is an hour', PAGE, 'text'), `${shown}\n`);
  });

  it('has a query that works', async () => {
    const test = await startTestService();
    const { key: secret } = await test.keys.create({ name: 'CI deploy', roles: ['ADMIN'] }, OPERATOR);
    const { body } = await query(test.url, secret, blockWith('usage(from', PAGE, 'graphql'));
    await test.stop();
    assert.deepEqual(body, { data: { apiKey: { usage: [] } } });
  });

  it('says how long use is kept, and how many rows that are at most', async () => {
    const now = Date.UTC(2030, 5, 15, 23, 59);
    const hours = Math.ceil((now - firstKept('HOUR', now)) / PERIOD_MS.HOUR);
    const days = (firstKept('HOUR', now) - firstKept('DAY', now)) / PERIOD_MS.DAY;
    assert.ok(text.includes(`Hours are kept for ${KEPT_DAYS.HOUR} days`));
    assert.ok(text.includes(`days are kept for ${KEPT_DAYS.DAY} days`));
    assert.ok(
      text.includes(
        `${(hours + days).toLocaleString('en')} rows: ${hours.toLocaleString('en')} hours and ${days} days`,
      ),
    );
    const test = await openTestKeys();
    const range = await test.keys.feature(Usage).byPeriod('nobody', { by: 'day', from: `${KEPT_DAYS.DAY}d` });
    await test.store.close();
    assert.equal(range.to - range.from, (KEPT_DAYS.DAY + 1) * PERIOD_MS.DAY);
  });
});
