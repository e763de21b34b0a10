import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import stringWidth from 'string-width';
import { wrapped } from '../../../src/cli/wrapped.ts';
import { testCli } from '../../support/cli.ts';
import { runCli } from '../../support/process.ts';
import { cliOnTerminal, type TerminalSession } from '../../support/pty.ts';
import { tempStore } from '../../support/temp.ts';

describe('a long line', () => {
  it('is wrapped in a time that grows as its length does', () => {
    for (const word of ['-'.repeat(300_000), '['.repeat(300_000), '-a <'.repeat(75_000)])
      assert.ok(wrapped('Error: ', `${word} end`, 40).endsWith(' end'));
  });
});

describe('an error', () => {
  let session: TerminalSession | undefined;
  afterEach(() => session?.close());

  it('of a wrong use shows the usage of the command', async () => {
    const { stderr } = await testCli().run(['apikey', 'show', 'CI', 'deploy']);
    assert.equal(
      stderr,
      `Error: Unexpected argument: deploy. Leave it out, or put a value that has spaces in quotes.
Code: USAGE
Usage: svc-api apikey show [NAME] [--json] [--database <path>] [--config <path>] [--no-color]
       [--server <url>] [--insecure] [--name <name>]
See svc-api apikey show --help
`,
    );
  });

  it('links to the section of its code, in the installed package', async () => {
    const { stderr } = await testCli().run(['apikey', 'list']);
    const [, code, link] = /\nCode: (\w+)\nReference: (\S+)\n$/.exec(stderr) ?? [];
    assert.equal(code, 'STORE_UNAVAILABLE');
    const { pathname, hash } = new URL(link!);
    assert.equal(hash, '#store_unavailable');
    assert.match(readFileSync(fileURLToPath(`file://${pathname}`), 'utf8'), /^### STORE_UNAVAILABLE$/m);
  });

  it('is wrapped at a terminal of 40 columns, except for text to paste', async () => {
    session = cliOnTerminal(['apikey', 'create', '--rolls'], { SVC_API_DATABASE: tempStore() }, undefined, {
      columns: 40,
    });
    assert.equal(await session.end(), 2);
    const lines = session.screen.trimEnd().split('\n');
    assert.deepEqual(
      [...lines.slice(0, 5), lines.at(-1)],
      [
        'Error: Unknown flag: --rolls. Did you',
        '       mean --roles?',
        'Code: USAGE',
        'Usage: svc-api apikey create [NAME]',
        '       [--json] [--database <path>]',
        'See svc-api apikey create --help',
      ],
    );
    assert.ok(lines.every((line) => stringWidth(line) <= 40 || line.trim().startsWith('[--permissions ')));
  });

  it('is not wrapped where it is piped', async () => {
    const { stderr } = await runCli(['apikey', 'nope'], { env: { COLUMNS: '40' } });
    assert.equal(stderr.split('\n').length, 5);
  });

  it('on a terminal has its link in one line', async () => {
    session = cliOnTerminal(['apikey', 'list'], { SVC_API_DATABASE: tempStore() }, undefined, { columns: 40 });
    assert.equal(await session.end(), 1);
    assert.match(session.screen, /\nReference: file:\S+\/docs\/errors\.md#store_unavailable\n$/);
  });
});

describe('the text of an error, wrapped', () => {
  it('breaks at spaces, and is aligned with its beginning', () => {
    assert.equal(wrapped('Error: ', 'one two three four', 14), 'Error: one two\n       three\n       four');
    assert.equal(wrapped('Error: ', '日本 日本 日本', 16), 'Error: 日本 日本\n       日本');
  });

  it('keeps units together', () => {
    assert.equal(
      wrapped('Error: ', 'Run "svc-api apikey list" with --name <name> [--a <b>]', 20),
      'Error: Run\n       "svc-api apikey list"\n       with\n       --name <name>\n       [--a <b>]',
    );
  });

  it('is as it was where it fits, and without a terminal', () => {
    assert.equal(wrapped('Error: ', 'two  spaces', 18), 'Error: two  spaces');
    assert.equal(wrapped('Error: ', 'x '.repeat(500), undefined), `Error: ${'x '.repeat(500)}`);
  });
});
