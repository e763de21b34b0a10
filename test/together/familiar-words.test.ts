import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { testCli } from '../support/cli.ts';
import { runProgramHere } from '../support/program-here.ts';
import { tempFolder } from '../support/temp.ts';

describe('what people type first', () => {
  it('shows the commands of apikey where nothing else is typed', async () => {
    const { stdout, stderr, code } = await testCli().run(['apikey']);
    assert.deepEqual([stdout, code], ['', 2]);
    for (const verb of ['create', 'list', 'rotate', 'apply', 'doctor', 'guard'])
      assert.match(stderr, new RegExp(`^[A-Z].*: .*\\b${verb}\\b`, 'm'));
    const wrong = await testCli().run(['apikey', '--name', 'CI']);
    assert.doesNotMatch(wrong.stderr, /Automation: apply/);
  });

  it('takes the server of login and logout as an argument', async () => {
    const cli = testCli();
    const env = { XDG_DATA_HOME: tempFolder() };
    const login = await cli.run(['apikey:login', 'https://127.0.0.1:1', '--json'], { env });
    const { error, code } = JSON.parse(login.stdout) as { error: string; code: string };
    assert.deepEqual([code, login.code], ['SERVER_UNREACHABLE', 1]);
    assert.match(error, /https:\/\/127\.0\.0\.1:1\b/);
    const logout = await cli.run(['apikey:logout', 'https://127.0.0.1:1'], { env });
    assert.deepEqual([logout.stdout, logout.code], ['There was no key for https://127.0.0.1:1\n', 0]);
    for (const verb of ['login', 'logout']) {
      const args = [`apikey:${verb}`, 'https://127.0.0.1:1', '--server', 'https://127.0.0.1:2', '--json'];
      const { stdout } = await cli.run(args, { env });
      assert.equal((JSON.parse(stdout) as { code: string }).code, 'USAGE');
    }
  });

  it('takes the file of apply as an argument', async () => {
    const cli = testCli();
    const file = join(tempFolder(), 'keys.yaml');
    writeFileSync(file, 'keys:\n  - {name: CI, roles: [GUEST]}\n');
    const applied = await cli.run(['apikey', 'apply', file, '--json']);
    assert.equal(applied.code, 0);
    assert.equal((await cli.run(['apikey', 'show', 'CI', '--json'])).code, 0);
    const twice = await cli.run(['apikey', 'apply', file, '-f', file]);
    assert.deepEqual([twice.code, /^Code: USAGE$/m.test(twice.stderr)], [2, true]);
  });

  it('names the order of the arguments of explain where they are swapped', async () => {
    const { stderr, code } = await testCli().run(['explain', 'DOCKER:READ_ANY', 'CI deploy']);
    assert.equal(code, 2);
    assert.match(stderr, /svc-api explain "CI deploy" DOCKER:READ_ANY\n/);
  });

  it('suggests the missing scheme of an upstream', async () => {
    for (const [typed, offered] of [
      ['localhost:3000', 'http://localhost:3000?'],
      ['10.0.0.7', 'http://10.0.0.7?'],
      ['[::1]:3000', 'http://[::1]:3000?'],
    ] as const) {
      const { stderr, code } = await testCli().run(['apikey:guard', typed, '--permission', 'DOCKER:READ_ANY']);
      assert.equal(code, 2);
      assert.ok(stderr.includes(`Did you mean ${offered}`), stderr);
    }
    const other = await testCli().run(['apikey:guard', 'ftp://host', '--permission', 'DOCKER:READ_ANY']);
    assert.doesNotMatch(other.stderr, /Did you mean/);
  });

  it('takes --ttl and --expires-in for the same', async () => {
    const cli = testCli();
    for (const flag of ['--ttl', '--expires-in']) {
      const created = await cli.run(['apikey', 'create', `Key ${flag.length}`, '--roles', 'GUEST', flag, '1h']);
      assert.equal(created.code, 0, created.stderr);
      const updated = await cli.run(['apikey', 'update', `Key ${flag.length}`, flag, '2h']);
      assert.equal(updated.code, 0, updated.stderr);
      const ran = await cli.run(['apikey', 'exec', '--roles', 'GUEST', flag, '5m', '--', process.execPath, '-e', '']);
      assert.equal(ran.code, 0, ran.stderr);
    }
    const both = await cli.run(['apikey', 'create', 'Both', '--roles', 'GUEST', '--ttl', '1h', '--expires-in', '2h']);
    assert.equal(both.code, 2);
  });
});

describe('the permissions of a key', () => {
  it('are one sentence where the key may do everything, and all of them in JSON', async () => {
    const cli = testCli();
    await cli.given('Admin', { roles: ['ADMIN'] });
    const { stdout } = await cli.run(['apikey', 'show', 'Admin']);
    assert.match(stdout, /^effectivePermissions +Every action on every resource$/m);
    const json = await cli.run(['apikey', 'show', 'Admin', '--json']);
    const { effectivePermissions } = JSON.parse(json.stdout) as { effectivePermissions: string[] };
    assert.ok(effectivePermissions.includes('API_KEY:DELETE_ANY') && effectivePermissions.length > 200);
  });

  it('are counted without included ones', async () => {
    const cli = testCli();
    await cli.given('Viewer', { roles: ['VIEWER'] });
    const { stdout } = await cli.run(['apikey', 'show', 'Viewer']);
    const [, shown = ''] = /^effectivePermissions +(.*)$/m.exec(stdout) ?? [];
    assert.equal(shown.split(', ').length, 27);
  });
});

describe('ls, rm and add', () => {
  it('are list, delete and create, in our own program and in a host', async () => {
    const cli = testCli();
    assert.equal((await cli.run(['apikey', 'add', 'CI', '--roles', 'GUEST'])).code, 0);
    assert.match((await cli.run(['apikey', 'ls'])).stdout, /^CI\t/);
    assert.equal((await cli.run(['apikey:rm', 'CI', '--yes'])).stdout, 'Successfully deleted 1 API key\n');
  });

  it('are named as aliases in the help of the command, and are not in lists of commands', async () => {
    const of = async (...args: string[]) => (await runProgramHere(args)).stdout;
    assert.match(await of('apikey', 'list', '--help'), /^ALIASES\n {2}\$ svc-api apikey ls$/m);
    assert.doesNotMatch(await of('apikey', '--help'), /apikey (ls|rm|add) /);
    assert.match((await runProgramHere(['apikey', 'lst'])).stderr, / are apply, [^.]*, list, log, /);
  });
});
