import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { SECRET, type TestCli, testCli } from '../../support/cli.ts';
import { configFile } from '../../support/config-file.ts';
import { errorText } from '../../support/errors.ts';
import { BIN } from '../../support/process.ts';
import { cliOnTerminal, KEYS, TerminalSession } from '../../support/pty.ts';
import { keyNamed } from '../../support/stored.ts';
import { tempFolder } from '../../support/temp.ts';

const { enter, space, down, up, ctrlU: clear } = KEYS;

describe('apikey --create on a terminal', () => {
  let session: TerminalSession | undefined;
  afterEach(() => session?.close());

  function start(cli: TestCli, args: readonly string[] = [], stdoutTo?: string): TerminalSession {
    return (session = cliOnTerminal(['apikey', '--create', ...args], { SVC_API_DATABASE: cli.database }, stdoutTo));
  }

  it('asks for everything on the terminal; stdout in a file has only the secret', async () => {
    const cli = testCli();
    const file = join(tempFolder(), 'secret');
    const terminal = start(cli, [], file);
    await terminal.answer('? Name', `CI deploy${enter}`);
    await terminal.answer('? Description (optional)', `For the pipeline${enter}`);
    await terminal.answer('? Roles', `${down}${space}`);
    await terminal.answer('❯◉ VIEWER', enter);
    await terminal.answer('? Permissions: choose a resource', 'dock');
    await terminal.answer('❯ DOCKER', enter);
    await terminal.answer('? Actions on DOCKER', space);
    await terminal.answer('❯◉ CREATE_ANY', `${down}${down}${space}`);
    await terminal.answer('❯◉ READ_ANY', enter);
    await terminal.answer('? Permissions: DOCKER:CREATE_ANY, DOCKER:READ_ANY. Add another resource', enter);
    await terminal.answer('? Expires', enter);
    assert.equal(await terminal.end(), 0);

    const secret = readFileSync(file, 'utf8');
    assert.match(secret.trimEnd(), SECRET);
    assert.equal(secret, `${secret.trimEnd()}\n`);
    assert.ok(!terminal.screen.includes(secret.trim()));
    assert.match(
      terminal.screen.replaceAll(/\s+/g, ' '),
      /Created API key "CI deploy" \(svc_\w{12}_…\) with roles VIEWER and permissions DOCKER:CREATE_ANY and DOCKER:READ_ANY\. It expires \S+Z \(in 30 days\)\. Its secret is not shown again\. $/,
    );
    const key = await keyNamed(cli.database, 'CI deploy');
    assert.deepEqual(
      [key?.description, key?.roles, key?.permissions],
      ['For the pipeline', ['VIEWER'], ['DOCKER:CREATE_ANY', 'DOCKER:READ_ANY']],
    );
  });

  it('refuses wrong answers where they are given, and takes corrected ones', async () => {
    const cli = testCli();
    const terminal = start(cli);
    await terminal.answer('? Name', enter);
    await terminal.see('The name is empty');
    terminal.type(`my-key${enter}`);
    await terminal.see('may only contain letters, digits and spaces; found "-" (U+002D)');
    terminal.type(`${clear}My key${enter}`);
    await terminal.answer('? Description', `${'x'.repeat(1001)}${enter}`);
    await terminal.see('at most 1000 are allowed');
    terminal.type(`${clear}${enter}`);
    await terminal.answer('? Roles', space);
    await terminal.answer('❯◉ CONNECT', enter);
    await terminal.answer('❯ Done', enter);
    await terminal.answer('? Expires', enter);
    assert.equal(await terminal.end(), 0);
    const key = await keyNamed(cli.database, 'My key');
    assert.deepEqual([key?.description, key?.roles, key?.permissions], [null, ['CONNECT'], []]);
  });

  it('does not let go before a role or a permission is chosen', async () => {
    const cli = testCli();
    const terminal = start(cli, ['--name', 'A key', '--description', 'given']);
    await terminal.answer('? Roles', enter);
    await terminal.answer('? Permissions: choose a resource', 'done');
    await terminal.see('No results found');
    terminal.type(`${clear}vms`);
    await terminal.answer('❯ VMS', enter);
    await terminal.answer('? Actions on VMS', enter);
    await terminal.answer('? Permissions: choose a resource', 'flash');
    await terminal.answer('❯ FLASH', enter);
    await terminal.answer('? Actions on FLASH', `${space}${enter}`);
    await terminal.answer('❯ Done', enter);
    await terminal.answer('? Expires', enter);
    assert.equal(await terminal.end(), 0);
    assert.ok(!/\? (Name|Description)/.test(terminal.screen), 'what the flags say is not asked');
    assert.deepEqual((await keyNamed(cli.database, 'A key'))?.permissions, ['FLASH:CREATE_ANY']);
  });

  it('offers to replace an existing key: No asks for another name, Yes replaces', async () => {
    const cli = testCli();
    const old = await cli.given('Taken');
    const other = start(cli, ['--roles', 'GUEST']);
    await other.answer('? Name', `Taken${enter}`);
    await other.answer(
      '? An API key named "Taken" already exists. Replace it, and delete all keys that it created? (y/N)',
      enter,
    );
    await other.answer('? Name', `Free${enter}`);
    await other.answer('? Description', enter);
    await other.answer('? Expires', enter);
    assert.equal(await other.end(), 0);
    assert.deepEqual(
      [(await keyNamed(cli.database, 'Taken'))?.id, (await keyNamed(cli.database, 'Free'))?.roles],
      [old.id, ['GUEST']],
    );

    const replacing = start(cli, ['--roles', 'GUEST']);
    await replacing.answer('? Name', `Taken${enter}`);
    await replacing.answer('Replace it, and delete all keys that it created? (y/N)', `y${enter}`);
    await replacing.answer('? Description', enter);
    await replacing.answer('? Expires', enter);
    assert.equal(await replacing.end(), 0);
    assert.match(replacing.screen, /Replaced API key "Taken"/);
    const replaced = await keyNamed(cli.database, 'Taken');
    assert.notEqual(replaced?.id, old.id);
    assert.deepEqual(replaced?.roles, ['GUEST']);
  });

  it('asks for the end, unless a flag has it', async () => {
    const cli = testCli();
    const asked = start(cli, ['--name', 'Asked', '--description', 'given', '--roles', 'GUEST']);
    assert.equal(await asked.end(), 0);
    assert.match(asked.screen, /It does not expire\./);
    for (const [name, keys, end] of [
      ['A', enter, '30 days'],
      ['B', `${down}${enter}`, '90 days'],
      ['C', `${down}${down}${enter}`, '1 year'],
    ] as const) {
      const terminal = start(cli, ['--roles', 'GUEST', '--description', '']);
      await terminal.answer('? Name', `${name}${enter}`);
      await terminal.see('? Expires');
      await terminal.answer('at another time', keys);
      assert.equal(await terminal.end(), 0);
      assert.match(terminal.screen, new RegExp(`It expires \\S+Z \\(in ${end}\\)\\.`));
    }
    const given = start(cli, ['--roles', 'GUEST', '--description', '', '--expires-in', '90m']);
    await given.answer('? Name', `D${enter}`);
    assert.equal(await given.end(), 0);
    assert.match(given.screen, /It expires \S+Z \(in 90 minutes\)\./);
    assert.doesNotMatch(given.screen, /\? Expires/);
    const never = start(cli, ['--roles', 'GUEST', '--description', '']);
    await never.answer('? Name', `E${enter}`);
    await never.answer('? Expires', `${down}${down}${down}`);
    await never.answer('❯ never', enter);
    assert.equal(await never.end(), 0);
    assert.equal((await keyNamed(cli.database, 'E'))?.expiresAt, null);
  });

  it('offers the ends that the policy allows, its longest among them, and checks one that is typed', async () => {
    const cli = testCli();
    const file = configFile('policy: { maxLifetime: 45d }\n');
    const args = ['--roles', 'GUEST', '--description', '', '--config', file];
    const terminal = start(cli, args);
    await terminal.answer('? Name', `A${enter}`);
    await terminal.see('? Expires');
    await terminal.answer('at another time', down);
    await terminal.answer('❯ in 45d', down);
    await terminal.answer('❯ at another time', enter);
    await terminal.see('? Expires in (90m, 12h, 30d)');
    terminal.type(`46d${enter}`);
    await terminal.see('which the policy does not allow (maxLifetime: 45d)');
    terminal.type(`${clear}45d${enter}`);
    assert.equal(await terminal.end(), 0);
    assert.doesNotMatch(terminal.screen, /in 90 days|in 1 year|never/);
    assert.match(terminal.screen, /It expires \S+Z \(in 45 days\)\./);
  });

  it('checks a custom expiry as it is given', async () => {
    const cli = testCli();
    const terminal = start(cli, ['--name', 'Own', '--description', '']);
    await terminal.answer('? Roles', space);
    await terminal.answer('❯◉ CONNECT', enter);
    await terminal.answer('❯ Done', enter);
    await terminal.see('? Expires');
    await terminal.answer('at another time', up);
    await terminal.answer('❯ at another time', enter);
    await terminal.see('? Expires in (90m, 12h, 30d) or at (2030-12-31T23:59:59Z)');
    for (const [typed, problem] of [
      ['', 'is not a duration'],
      ['1M', 'Units are lower case'],
      ['2020-01-01T00:00:00Z', 'is in the past'],
      ['2030-12-31', '"2030-12-31" has no time. Write 2030-12-31T00:00:00Z'],
      ['99999d', 'is more than ten years away'],
    ] as const) {
      terminal.type(`${clear}${typed}${enter}`);
      await terminal.see(problem);
    }
    const end = new Date(Date.now() + 10 * 86_400_000).toISOString();
    terminal.type(`${clear}${end}${enter}`);
    assert.equal(await terminal.end(), 0);
    assert.equal((await keyNamed(cli.database, 'Own'))?.expiresAt, Date.parse(end));
  });

  it('has no key that chooses all roles or actions', async () => {
    const cli = testCli();
    const terminal = start(cli, ['--name', 'A key', '--description', '']);
    await terminal.answer('? Roles', `a${enter}`);
    await terminal.answer('? Permissions: choose a resource', `vms`);
    await terminal.answer('❯ VMS', enter);
    await terminal.answer('? Actions on VMS', `i${space}${enter}`);
    await terminal.answer('? Permissions: VMS:CREATE_ANY. Add another resource', enter);
    await terminal.answer('? Expires', enter);
    assert.equal(await terminal.end(), 0);
    const key = await keyNamed(cli.database, 'A key');
    assert.deepEqual([key?.roles, key?.permissions], [[], ['VMS:CREATE_ANY']]);
  });

  for (const rows of [24, 10, 6])
    it(`works on a screen of 40 columns and ${rows} rows, without colours`, async () => {
      const cli = testCli();
      const env = { SVC_API_DATABASE: cli.database, NO_COLOR: '1' };
      const terminal = (session = cliOnTerminal(['apikey', 'create'], env, undefined, { columns: 40, rows }));
      await terminal.answer('? Name', `Small${enter}`);
      await terminal.answer('? Description', enter);
      await terminal.answer('❯◯ CONNECT', `${down}${space}`);
      await terminal.answer('❯◉ VIEWER', enter);
      await terminal.answer('❯ Done', enter);
      await terminal.answer('❯ in 30 days', enter);
      assert.equal(await terminal.end(), 0);
      assert.equal(terminal.hasColors, false);
      assert.deepEqual((await keyNamed(cli.database, 'Small'))?.roles, ['VIEWER']);
    });

  it('asks nothing when nothing is missing, and checks the flags before it asks', async () => {
    const cli = testCli();
    const complete = start(cli, ['--name', 'A key', '--roles', 'GUEST']);
    assert.equal(await complete.end(), 0);
    assert.match(complete.screen, /^svc_\w+\nCreated API key "A key".*\n$/);
    const wrong = start(testCli(), ['--roles', 'GUST']);
    assert.equal(await wrong.end(), 2);
    assert.equal(wrong.screen, errorText('ROLE_INVALID', '"GUST" is not a role. Did you mean GUEST?'));
  });

  it('never asks with --json', async () => {
    const cli = testCli();
    const terminal = start(cli, ['--json']);
    assert.equal(await terminal.end(), 2);
    assert.equal((JSON.parse(terminal.screen) as { code: string }).code, 'USAGE');
    assert.ok(!existsSync(cli.database));
  });

  it('never asks when stdin or stderr is no terminal', async () => {
    const cli = testCli();
    const error = errorText(
      'USAGE',
      'The name is missing. Pass --name <name>; you can only be asked for it on a terminal, without --json and --no-input.\n' +
        'An API key needs at least one role or permission.',
    );
    const withoutStdin = await cli.runProcess(['apikey', '--create'], { stdio: ['pipe', 'pipe', 'pipe'] });
    assert.deepEqual(withoutStdin, { stdout: '', stderr: error, code: 2, signal: null });
    const file = join(tempFolder(), 'stderr');
    const script = 'exec "$0" "$1" apikey --create 2> "$2"';
    session = new TerminalSession('/bin/sh', ['-c', script, process.execPath, BIN, file], {
      SVC_API_DATABASE: cli.database,
    });
    assert.equal(await session.end(), 2);
    assert.deepEqual([session.screen, readFileSync(file, 'utf8')], ['', error]);
  });
});
