import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { type TestCli, testCli } from '../../support/cli.ts';
import { errorText } from '../../support/errors.ts';
import { cliOnTerminal, KEYS, type TerminalSession } from '../../support/pty.ts';
import { keyNamed, namesIn } from '../../support/stored.ts';

const { enter, space } = KEYS;

describe('on a terminal', () => {
  let session: TerminalSession | undefined;
  afterEach(() => session?.close());

  function start(cli: TestCli, args: readonly string[], env: NodeJS.ProcessEnv = {}): TerminalSession {
    return (session = cliOnTerminal(args, { SVC_API_DATABASE: cli.database, ...env }));
  }

  const NOT_ASKED: readonly (readonly [command: string, args: readonly string[], error: string])[] = [
    [
      'apikey create',
      ['--roles', 'VIEWER'],
      'The name is missing. Pass --name <name>; you can only be asked for it on a terminal, without --json and --no-input.',
    ],
    [
      'apikey',
      ['--create', '--roles', 'VIEWER'],
      'The name is missing. Pass --name <name>; you can only be asked for it on a terminal, without --json and --no-input.',
    ],
    [
      'apikey delete',
      ['--yes'],
      'The key to delete is missing. Pass --name <name>; ' +
        'you can only choose keys on a terminal, without --json and --no-input.',
    ],
    [
      'apikey log',
      ['--prune', '--until', '1d'],
      'Pass --yes to delete entries: you can only be asked on a terminal, without --json and --no-input.',
    ],
    [
      'apikey verify',
      ['-'],
      'You can only type a secret if stderr is a terminal, too, without --json and --no-input. ' +
        'Pass it through a pipe or a file.',
    ],
  ];
  for (const [command, args, error] of NOT_ASKED) {
    it(`--no-input asks nothing, and names what to pass: ${command} ${args.join(' ')}`, async () => {
      const cli = testCli();
      await cli.given('CI');
      const terminal = start(cli, [...command.split(' '), ...args, '--no-input']);
      assert.equal(await terminal.end(), 2);
      const unwrapped = (text: string) => text.replaceAll(/\n {7}(?!svc-api )/g, ' ');
      assert.equal(unwrapped(terminal.screen), unwrapped(errorText('USAGE', error, command)));
      assert.deepEqual(await namesIn(cli.database), ['CI']);
    });
  }

  it('--yes replaces no key: --overwrite does', async () => {
    const cli = testCli();
    const { id } = await cli.given('CI');
    const terminal = start(cli, [
      'apikey',
      'create',
      '--roles',
      'GUEST',
      '--description',
      '',
      '--expires-in',
      '1d',
      '--yes',
    ]);
    await terminal.answer('? Name', `CI${enter}`);
    assert.equal(await terminal.end(), 1);
    assert.match(terminal.screen, /\nError: An API key named "CI" already exists\. Pass --overwrite to replace it/);
    assert.equal((await keyNamed(cli.database, 'CI'))?.id, id);
  });

  it('--yes deletes the chosen keys', async () => {
    const cli = testCli();
    await cli.given('CI');
    const terminal = start(cli, ['apikey', '--delete', '--yes']);
    await terminal.answer('? API keys to delete', space);
    await terminal.answer('❯◉ CI', enter);
    assert.equal(await terminal.end(), 0);
    assert.ok(!terminal.screen.includes('They stop working'), terminal.screen);
    assert.deepEqual(await namesIn(cli.database), []);
  });

  /** An escape sequence for a color or bold text. */
  // oxlint-disable-next-line no-control-regex
  const COLOR = /\u001b\[(?!0?m)[\d;]+m/;

  it('questions have colours, but not with --no-color or NO_COLOR', async () => {
    for (const [args, env, isColored] of [
      [[], {}, true],
      [[], { NO_COLOR: '1' }, false],
      [['--no-color'], {}, false],
      [['--no-color'], { FORCE_COLOR: '1' }, false],
      [['--no-color'], { FORCE_COLOR: '3', NO_COLOR: '' }, false],
    ] as const) {
      const cli = testCli();
      const terminal = start(cli, ['apikey', 'create', '--name', 'CI', '--description', '', ...args], env);
      await terminal.answer('? Roles', space);
      await terminal.see('❯◉ CONNECT');
      await terminal.answer('', KEYS.ctrlC);
      assert.equal(await terminal.end(), 130);
      assert.equal(COLOR.test(terminal.raw), isColored, JSON.stringify([args, env, terminal.raw]));
      assert.match(terminal.screen, /Cancelled: nothing was changed\.\n$/);
      assert.ok(!existsSync(cli.database) || (await namesIn(cli.database)).length === 0);
    }
  });

  it('help has colours, but not with --no-color or NO_COLOR', async () => {
    for (const [args, env, isColored] of [
      [[], {}, true],
      [[], { NO_COLOR: '1' }, false],
      [['--no-color'], {}, false],
      [['--no-color'], { FORCE_COLOR: '1' }, false],
    ] as const) {
      for (const help of [
        ['apikey', 'list', '--help'],
        ['help', 'apikey', 'list'],
      ]) {
        const terminal = start(testCli(), [...help, ...args], env);
        assert.equal(await terminal.end(), 0);
        assert.equal(COLOR.test(terminal.raw), isColored, JSON.stringify([args, env, terminal.raw]));
      }
    }
  });

  it('--no-color changes nothing in the environment of a command that exec runs', async () => {
    const terminal = start(
      testCli(),
      ['apikey', 'exec', '--roles', 'GUEST', '--no-color', '--', 'sh', '-c', 'echo "[$NO_COLOR$FORCE_COLOR]"'],
      { FORCE_COLOR: '3' },
    );
    assert.equal(await terminal.end(), 0);
    assert.match(terminal.screen, /\[3\]/);
  });
});
