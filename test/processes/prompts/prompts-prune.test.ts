import assert from 'node:assert/strict';
import { type TestCli, testCli } from '../../support/cli.ts';
import { cliOnTerminal, KEYS, type TerminalSession } from '../../support/pty.ts';

describe('apikey log --prune on a terminal', () => {
  let session: TerminalSession;
  let cli: TestCli;
  beforeEach(async () => {
    cli = testCli();
    await cli.given('A');
    await cli.given('B');
    const args = ['apikey', 'log', '--prune', '--until', new Date(Date.now() + 60_000).toISOString()];
    session = cliOnTerminal(args, { SVC_API_DATABASE: cli.database });
    await session.see('Delete 2 entries of the audit log, up to number 2?');
  });
  afterEach(() => session.close());
  const actions = async () => {
    const { stdout } = await cli.run(['apikey', 'log', '--json']);
    return (JSON.parse(stdout) as { entries: { action: string }[] }).entries.map(({ action }) => action);
  };

  it('asks first; Enter means No, and nothing is deleted', async () => {
    session.type(KEYS.enter);
    assert.deepEqual([await session.end(), await actions()], [130, ['CREATE', 'CREATE']]);
  });

  it('deletes after a Yes', async () => {
    session.type(`y${KEYS.enter}`);
    await session.see('Deleted 2 entries of the audit log.');
    assert.deepEqual([await session.end(), await actions()], [0, ['PRUNE']]);
  });
});
