import assert from 'node:assert/strict';
import { testCli } from '../../support/cli.ts';
import { errorText } from '../../support/errors.ts';
import { runCli } from '../../support/process.ts';
import { runProgramHere } from '../../support/program-here.ts';

const SECRET = `svc_0a1B2c3D4e5F_${'x'.repeat(49)}`;

type Row = readonly [command: string, args: readonly string[], error: string];

/** Lists without commas: oclif reads the second value as the name of a key. */
const SPACED: readonly Row[] = [
  ['apikey', ['--create', '--name', 'X', '--roles', 'VIEWER', 'GUEST'], `GUEST. ${commas('--roles VIEWER,GUEST')}`],
  ['apikey create', ['X', '--roles', 'VIEWER', 'GUEST'], `GUEST. ${commas('--roles VIEWER,GUEST')}`],
  ['apikey create', ['--name', 'X', '--roles', 'VIEWER', 'OPS'], `OPS. ${commas('--roles VIEWER,OPS')}`],
  ['apikey create', ['--roles', 'VIEWER', 'guest'], `guest. ${commas('--roles VIEWER,guest')}`],
  ['apikey create', ['--roles=VIEWER', 'GUEST'], `GUEST. ${commas('--roles VIEWER,GUEST')}`],
  [
    'apikey update',
    ['--permissions', 'DOCKER:READ_ANY', 'ARRAY:READ_ANY'],
    `ARRAY:READ_ANY. ${commas('--permissions DOCKER:READ_ANY,ARRAY:READ_ANY')}`,
  ],
  ['apikey create', ['X', '--roles', 'VIEWER,', 'GUEST'], `GUEST. ${commas('--roles VIEWER,GUEST')}`],
  ['apikey create', ['--rate', '9/s', '9/m'], `9/m. ${commas('--rate 9/s,9/m')}`],
];

function commas(list: string): string {
  return `Separate the values of ${list.split(' ')[0]} with commas: ${list}`;
}

const ROWS: readonly Row[] = [
  ['apikey', ['--creat'], 'Unknown flag: --creat. Did you mean --create?'],
  ['apikey', ['--nmae', 'X'], 'Unknown flag: --nmae. Did you mean --name?'],
  ['apikey', ['--list'], 'Unknown flag: --list. Did you mean "svc-api apikey list"?'],
  ['apikey', ['--updte', 'X'], 'Unknown flag: --updte. Did you mean "svc-api apikey update"?'],
  ...SPACED.map((row): Row => [...row.slice(0, 2), `Unexpected argument: ${row[2]}`] as unknown as Row),
  ['apikey create', ['--rolls', 'VIEWER'], 'Unknown flag: --rolls. Did you mean --roles?'],
  ['apikey create', ['--ROLES=VIEWER'], 'Unknown flag: --ROLES. Did you mean --roles?'],
  ['apikey create', ['-name', 'X'], 'Unknown flag: -name. Did you mean --name?'],
  ['apikey create', ['--nmae=X', '--rolles=Y'], 'Unknown flags: --nmae, --rolles. Did you mean --name or --roles?'],
  ['apikey create', ['--token=hunter2'], 'Unknown flag: --token. Leave it out.'],
  ['apikey create', ['--token:hunter2', '--pin 1'], 'Unknown flags: --token, --pin. Leave them out.'],
  ['apikey create', ['-phunter2'], 'Unknown flag: -p. Leave it out.'],
  ['apikey create', [`--${SECRET}`], 'Unknown flag: --svc_0a1B2c3D4e5F_…. Leave it out.'],
  ['apikey create', ['X', '--limit', '100/m'], 'Unknown flag: --limit. Did you mean --rate?'],
  ['apikey update', ['--owned-by', 'Ada'], 'Unknown flag: --owned-by. Did you mean --where-owner?'],
  ['apikey show', ['--name'], 'Flag --name expects a value. Pass --name <name>.'],
  [
    'apikey rotate',
    ['A', 'B', 'C'],
    'Unexpected arguments: B, C. Leave them out, or put a value that has spaces in quotes.',
  ],
];

describe('a flag or argument that is wrong', () => {
  for (const [command, args, error] of ROWS) {
    it(`is refused with what to do: ${command} ${args.join(' ')}`, async () => {
      const cli = testCli();
      const typed = [...command.split(' '), ...args];
      const [plain, json] = await Promise.all([cli.run(typed), cli.run([...typed, '--json'])]);
      assert.deepEqual(plain, { stdout: '', stderr: errorText('USAGE', error, command), code: 2, signal: null });
      // A missing value does not swallow --json.
      assert.deepEqual([JSON.parse(json.stdout), json.stderr, json.code], [{ error, code: 'USAGE' }, '', 2]);
    });
  }

  it('gets a suggestion also where help does not show the flag that was meant', async () => {
    const { stderr } = await runProgramHere(['serve', '--keep-alve', '9']);
    const error = 'Unknown flag: --keep-alve. Did you mean --keep-alive?';
    assert.equal(stderr, errorText('USAGE', error, 'serve'));
  });

  it('gets the field of svc-api.yaml that takes its place', async () => {
    const { stderr } = await runProgramHere(['serve', '--max-connections', '9']);
    const error = 'Unknown flag: --max-connections. Set "maxConnections" under "server" in svc-api.yaml.';
    assert.equal(stderr, errorText('USAGE', error, 'serve'));
  });

  it('is refused before the command that exec is to run', async () => {
    const { stderr } = await testCli().run(['apikey', 'exec', '--roles', 'VIEWER', 'GUEST', '--', 'true']);
    const error = `Unexpected argument: GUEST. ${commas('--roles VIEWER,GUEST')}`;
    assert.equal(stderr, errorText('USAGE', error, 'apikey exec'));
  });

  it('is not reported if the name of a key comes after a list', async () => {
    const cli = testCli();
    for (const name of ['CI deploy', 'Viewer bot']) {
      const { stderr } = await cli.run(['apikey', 'create', '--roles', 'VIEWER', name]);
      assert.match(stderr, new RegExp(`^Created API key "${name}"`));
    }
  });

  it('is refused in the same way in the form with colons', async () => {
    const [colons, spaces] = await Promise.all([
      runProgramHere(['apikey:create', '--rolls', 'VIEWER']),
      runProgramHere(['apikey', 'create', '--rolls', 'VIEWER']),
    ]);
    assert.deepEqual(colons, spaces);
    assert.match(spaces.stderr, /^Error: Unknown flag: --rolls\. Did you mean --roles\?\n/);
  });

  it('is refused as one JSON object by commands that have no --json', async () => {
    for (const args of [
      ['serve', '--json'],
      ['serve', '--port', '0', '--json', '--prot'],
    ]) {
      const { stdout, stderr, code } = await runProgramHere(args);
      const { error, ...rest } = JSON.parse(stdout) as { error: string };
      assert.match(error, /^Unknown flags?: /);
      assert.deepEqual([rest, stderr, code], [{ code: 'USAGE' }, '', 2]);
    }
  });

  it('shows no value of an unknown flag in the log either', async () => {
    const { stderr } = await runCli(['apikey', 'create', '--token=hunter2'], { env: { LOG_LEVEL: 'trace' } });
    assert.match(stderr, /"msg":"the command failed"/);
    assert.ok(!stderr.includes('hunter2'), stderr);
  });
});

describe('a failure of help', () => {
  it('has the form of all others', async () => {
    const { stdout, stderr, code } = await runProgramHere(['help', '--nope']);
    assert.match(stderr, /^Error: Unknown flag: --nope\. Leave it out\.\nCode: USAGE\nUsage: svc-api help /);
    assert.deepEqual([stdout, code], ['', 2]);
  });
});
