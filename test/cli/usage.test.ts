import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { testCli } from '../support/cli.ts';
import { errorText } from '../support/errors.ts';

type Row = readonly [what: string, args: readonly string[], error: string];

const QUOTES = 'Leave it out, or put a value that has spaces in quotes.';
const EXPECTS_NAME = 'Flag --name expects a value. Pass --name <name>.';
const NAMED = ['--name', 'A key', '--roles', 'GUEST'];
const CREATE: readonly Row[] = [
  ['neither mode', NAMED, 'Neither --create nor --delete is given. Pass exactly one of them.'],
  ['an unknown flag', ['--create', ...NAMED, '--rolls', 'x'], 'Unknown flag: --rolls. Did you mean --roles?'],
  ['the value of an unknown flag', ['--create', ...NAMED, '--token=hunter2'], 'Unknown flag: --token. Leave it out.'],
  [
    'an argument too many',
    ['--create', '--name', 'A', 'key', '--roles', 'GUEST'],
    `Unexpected argument: key. ${QUOTES}`,
  ],
  [
    'a repeated name',
    ['--create', ...NAMED, '--name', 'B key'],
    'Flag --name can only be specified once. Leave the others out.',
  ],
  [
    'a repeated description',
    ['--create', '--description', 'a', '--description', 'b'],
    'Flag --description can only be specified once. Leave the others out.',
  ],
  ['a flag as the value of another', ['--create', '--name=--roles', '--roles', 'GUEST'], EXPECTS_NAME],
  [
    'a list without a value',
    ['--create', '--name', 'A key', '--roles'],
    'Flag --roles expects a value. Pass --roles <role,…>.',
  ],
];

const DELETE: readonly Row[] = [
  [
    'both modes',
    ['--create', '--delete', '--name', 'A key'],
    'Both --create and --delete are given. Pass exactly one of them.',
  ],
  [
    'one flag of --create',
    ['--delete', '--name', 'A key', '--overwrite'],
    '--overwrite cannot be used with --delete. Leave it out.',
  ],
  [
    'all flags of --create',
    ['--delete', ...NAMED, '--permissions', 'VMS:READ_ANY', '--description', '', '--overwrite'],
    '--roles, --permissions, --description, --overwrite cannot be used with --delete. Leave them out.',
  ],
  ['an unknown flag', ['--delete', '--name', 'A key', '--force'], 'Unknown flag: --force. Leave it out.'],
  ['an argument too many', ['--delete', 'A key'], `Unexpected argument: A key. ${QUOTES}`],
];

describe('apikey used wrongly', () => {
  for (const [rows, fields, mode] of [
    [CREATE, {}, 'creating'],
    [DELETE, { deleted: 0 }, 'deleting'],
  ] as const) {
    for (const [what, args, error] of rows) {
      it(`refuses ${what} when ${mode}`, async () => {
        const cli = testCli();
        const [plain, json] = await Promise.all([cli.run(['apikey', ...args]), cli.run(['apikey', '--json', ...args])]);
        assert.deepEqual(plain, { stdout: '', stderr: errorText('USAGE', error), code: 2, signal: null });
        const document = `${JSON.stringify({ ...fields, error, code: 'USAGE' }, null, 2)}\n`;
        assert.deepEqual(json, { stdout: document, stderr: '', code: 2, signal: null });
        assert.ok(!existsSync(cli.database));
      });
    }
  }

  it('takes --name=--json for a wrong use, not for --json', async () => {
    const { stdout, stderr, code } = await testCli().run(['apikey', '--create', '--name=--json', '--roles', 'GUEST']);
    assert.deepEqual([stdout, stderr, code], ['', errorText('USAGE', EXPECTS_NAME), 2]);
  });

  it('keeps what could steer a terminal out of the message', async () => {
    const cli = testCli();
    const results = await Promise.all([
      cli.run(['apikey', '--create', '\u001b[2Jcleared']),
      cli.run(['apikey', '--create', '--\u001b[2Jcleared']),
    ]);
    for (const { stderr, code } of results) {
      assert.match(stderr, /^Error: .*<U\+001B>\[2Jcleared\. Leave it out.*\nCode: USAGE\n/);
      assert.equal(code, 2);
    }
  });

  it('says what failed, not how, when a secret is given as an argument', async () => {
    const cli = testCli();
    const { key } = await cli.given('A key');
    const results = await Promise.all([
      cli.run(['apikey', '--delete', key]),
      cli.runProcess(['apikey', '--delete', '--name', 'x', `--${key}`, '--json'], { env: { LOG_LEVEL: 'trace' } }),
      cli.runProcess(['apikey', '--create', '--name', 'x', '--roles', key, '--json'], { env: { LOG_LEVEL: 'trace' } }),
      cli.run(['apikey', '--delete', '--json'], { env: { LOG_LEVEL: key } }),
    ]);
    for (const { stdout, stderr, code } of results) {
      assert.equal(code, 2);
      assert.match(stdout + stderr, new RegExp(key.slice(0, 16), 'i'), 'the public id shows');
      assert.ok(!(stdout + stderr).toLowerCase().includes(key.slice(17, 40).toLowerCase()), 'the secret does not');
    }
  });
});
