import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { exitCodeOf } from '../../../src/cli/error-codes.ts';
import { type TestCli, testCli } from '../../support/cli.ts';
import { cliOnTerminal, KEYS, type TerminalSession } from '../../support/pty.ts';
import { namesIn } from '../../support/stored.ts';
import { tempFolder } from '../../support/temp.ts';

describe('restore on a terminal', () => {
  let session: TerminalSession;
  let cli: TestCli;
  let backup: string;
  const start = (env: NodeJS.ProcessEnv = {}) =>
    (session = cliOnTerminal(['restore', backup], { SVC_API_DATABASE: cli.database, ...env }));
  beforeEach(async () => {
    cli = testCli();
    await cli.given('A');
    backup = join(tempFolder(), 'backup.sqlite');
    await cli.run(['backup', backup]);
    await cli.given('Created since');
    start();
    await session.see('1 key was created since, and will be deleted:');
    await session.see('Created since (svc_');
    await session.see('Restore the backup?');
  });
  afterEach(() => session.close());

  it('asks first; Enter means No, and nothing is changed', async () => {
    session.type(KEYS.enter);
    assert.deepEqual([await session.end(), await namesIn(cli.database)], [130, ['A', 'Created since']]);
  });

  it('is left by Ctrl-C, and nothing is changed', async () => {
    session.type(KEYS.ctrlC);
    assert.deepEqual([await session.end(), await namesIn(cli.database)], [130, ['A', 'Created since']]);
  });

  for (const [prompts, signal] of [
    ['rich', 'SIGTERM'],
    ['rich', 'SIGHUP'],
    ['plain', 'SIGTERM'],
    ['plain', 'SIGHUP'],
  ] as const)
    it(`is ended by ${signal} at a ${prompts} prompt, and removes its copy of the backup`, async () => {
      session.type(KEYS.enter);
      await session.end();
      await start({ SVC_API_PROMPTS: prompts }).see('Restore the backup?');
      session.kill(signal);
      const code = await session.end();
      assert.deepEqual([code, await namesIn(cli.database)], [exitCodeOf(signal), ['A', 'Created since']]);
      assert.deepEqual(readdirSync(dirname(cli.database)).toSorted(), ['keys.sqlite', 'keys.sqlite-reserve']);
    });

  it('restores nothing if keys were changed before the answer', async () => {
    await cli.given('Meanwhile');
    session.type(`y${KEYS.enter}`);
    await session.see('Code: RESTORE_OUTDATED');
    assert.deepEqual([await session.end(), await namesIn(cli.database)], [1, ['A', 'Created since', 'Meanwhile']]);
    assert.deepEqual(readdirSync(dirname(cli.database)).toSorted(), ['keys.sqlite', 'keys.sqlite-reserve']);
  });

  it('restores after a Yes', async () => {
    session.type(`y${KEYS.enter}`);
    await session.see('Restored a backup with 1 key');
    assert.deepEqual([await session.end(), await namesIn(cli.database)], [0, ['A']]);
  });
});
