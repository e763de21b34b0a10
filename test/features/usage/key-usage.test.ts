import assert from 'node:assert/strict';
import type { UsageJson } from '../../../src/features/usage/cli/usage-view.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { formatTime } from '../../../src/keys/basics/time.ts';
import { startOf } from '../../../src/keys/key/use.ts';
import { testCli, type TestCli } from '../../support/cli.ts';
import { describeOn, describeOnEachAndRemotely } from '../../support/dialects.ts';
import { authenticate, openTestKeys } from '../../support/keys.ts';
import { cliOnTerminal } from '../../support/pty.ts';

const HOUR = 3_600_000;

/** A key with two accepted requests and a refused one, two hours ago. @returns the start of that hour */
async function usedKey(cli: TestCli): Promise<string> {
  const { key } = await cli.given('CI deploy');
  const { keys, store, time } = await openTestKeys({ database: cli.database });
  const start = startOf('HOUR', Date.now()) - 2 * HOUR;
  time.now = start + 1000;
  for (let use = 0; use < 2; use += 1) await authenticate(keys, key);
  await keys.setEnabled((await keys.findByName('CI deploy', OPERATOR))!.id, false, OPERATOR);
  await authenticate(keys, key);
  await keys.finishActivity();
  await store.close();
  return formatTime(start);
}

describeOnEachAndRemotely('apikey usage', () => {
  let cli: TestCli;
  beforeEach(() => {
    cli = testCli();
  });
  const usage = (...args: string[]) => cli.run(['apikey', 'usage', ...args]);

  it('is a line for each hour or day with requests, with tabs, where no terminal is', async () => {
    const start = await usedKey(cli);
    const counts = '2\t0\t0\t1\n';
    const byHour = await usage('CI deploy');
    assert.deepEqual(byHour, { stdout: `${start}\t${counts}`, stderr: '', code: 0, signal: null });
    const byDay = await usage('--name', 'CI deploy', '--by', 'day', '--since', '7d');
    assert.equal(byDay.stdout, `${start.slice(0, 10)}T00:00:00.000Z\t${counts}`);
  });

  it('is one document with --json', async () => {
    const start = await usedKey(cli);
    const { stdout } = await usage('CI deploy', '--json', '--since', '3h');
    const { id, since, until, periods, ...rest } = JSON.parse(stdout) as UsageJson;
    const counts = { accepted: 2, forbidden: 0, limited: 0, refused: 1 };
    assert.deepEqual(rest, { name: 'CI deploy', by: 'HOUR', totals: counts });
    assert.deepEqual(periods, [{ start, ...counts }]);
    assert.equal(Date.parse(until) - Date.parse(since), 4 * HOUR);
    assert.match(id, /^[\da-f-]{36}$/);
  });

  it('reports that there were no requests', async () => {
    await cli.given('Idle');
    const { stderr, ...rest } = await usage('Idle');
    assert.match(
      stderr,
      /^API key "Idle" made no requests from \S+Z to \S+Z\. New requests appear after a few seconds\.\n$/,
    );
    assert.deepEqual(rest, { stdout: '', code: 0, signal: null });
    const { totals, periods } = JSON.parse((await usage('Idle', '--json')).stdout) as UsageJson;
    assert.deepEqual([totals.accepted, periods], [0, []]);
  });

  it('is refused for another period, an invalid or too early time, and an unknown key', async () => {
    await cli.given('CI deploy');
    for (const [args, code, exit] of [
      [['CI deploy', '--by', 'week'], 'INPUT_INVALID', 2],
      [['CI deploy', '--since', 'yesterday'], 'INPUT_INVALID', 2],
      [['CI deploy', '--since', '100d'], 'INPUT_INVALID', 2],
      [['Nobody'], 'NOT_FOUND', 1],
      [[], 'USAGE', 2],
    ] as const) {
      const { stdout, code: exited } = await usage(...args, '--json');
      assert.deepEqual([(JSON.parse(stdout) as { code: string }).code, exited], [code, exit], args.join(' '));
    }
  });
});

describeOn('sqlite', 'apikey usage on a terminal', () => {
  for (const [what, env, mark] of [
    ['blocks', { TERM: 'xterm', LC_ALL: 'C.UTF-8' }, '█'],
    ['ASCII, where the locale has no more', { TERM: 'xterm', LC_ALL: 'C' }, '@'],
  ] as const)
    it(`is plotted within its width: ${what}`, async () => {
      const cli = testCli();
      await usedKey(cli);
      const surroundings = { ...env, SVC_API_DATABASE: cli.database };
      const terminal = cliOnTerminal(['apikey', 'usage', 'CI deploy'], surroundings, undefined, { columns: 40 });
      assert.equal(await terminal.end(), 0);
      const lines = terminal.screen.trimEnd().split('\n');
      assert.deepEqual(lines.slice(1, 3), ['a column is 2 hours', '           total  most']);
      assert.deepEqual(
        lines.slice(3).map((line) => line.replaceAll(/ +/g, ' ')),
        [`accepted 2 2 ${mark}`, 'forbidden 0 0', 'limited 0 0', `refused 1 1 ${mark}`],
      );
      for (const line of lines.slice(1)) assert.ok(line.length <= 40, line);
    });
});
