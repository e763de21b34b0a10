import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { withKeys } from '../../src/cli/with-keys.ts';
import { testCli, type TestCli } from '../support/cli.ts';
import { readDirectly } from '../support/direct.ts';
import { blockWith, pathWithCli, runBlock } from '../support/pages.ts';
import { type Finished, runCli } from '../support/process.ts';
import { NOBODY, serviceMachine } from '../support/service-machine.ts';
import { needsPrograms, needsRoot } from '../support/skip.ts';
import { keysIn } from '../support/stored.ts';
import { tempFolder } from '../support/temp.ts';
import { Sessions } from '../../src/features/sessions/sessions.ts';

const PAGE = 'docs/operations.md';

/** A folder with a store, and svc-api in the PATH. */
function workspace(): { folder: string; cli: TestCli; run: (block: string) => Promise<Finished> } {
  const folder = tempFolder();
  const cli = testCli(join(folder, 'store', 'keys.sqlite'));
  const env = { PATH: pathWithCli(folder), SVC_API_DATABASE: cli.database };
  return { folder, cli, run: (block) => runBlock(block, folder, env) };
}

describe('a key for one command, as docs/reference.md has it', () => {
  it('works, passes the exit code, and leaves no key', async () => {
    const { folder, cli, run } = workspace();
    const report = '#!/bin/sh\nsvc-api apikey list | cut -f 2,3\necho "$API_KEY"\nexit 3\n';
    writeFileSync(join(folder, 'report.sh'), report, { mode: 0o755 });
    const { stdout, code } = await run(blockWith('./report.sh', 'docs/reference.md'));
    assert.match(stdout, /^ACTIVE\tVIEWER\nsvc_\w{62}\n/);
    assert.equal(code, 3);
    assert.deepEqual(await keysIn(cli.database), []);
  });
});

describe('the log at debug, as docs/operations.md has it', () => {
  it('has these lines, with these fields', async () => {
    const { cli, folder } = workspace();
    await cli.given('Other');
    const env = { PATH: pathWithCli(tempFolder()), SVC_API_DATABASE: cli.database, XDG_CONFIG_HOME: folder };
    const { stderr, stdout } = await runBlock(blockWith('LOG_LEVEL=debug', PAGE), folder, env);
    assert.match(stdout, /^svc_\w{62}\n$/);
    const linesIn = (text: string) => text.split('\n').filter((line) => line.startsWith('{'));
    const fieldsOf = (line: string) => {
      const fields = Object.entries(JSON.parse(line) as Record<string, unknown>);
      const own = fields.filter(([field]) => !['level', 'time', 'name', 'pid'].includes(field));
      return own.map(([field, value]) => (field === 'msg' ? value : field));
    };
    const documented = linesIn(blockWith('the command begins', PAGE, 'json')).map(fieldsOf);
    assert.deepEqual(linesIn(stderr).map(fieldsOf), documented);
  });
});

describe('the audit log, as docs/operations.md has it', () => {
  it('is verified and pruned once a week', async () => {
    const { cli, run } = workspace();
    await cli.given('CI deploy');
    const { code, stdout, stderr } = await run(blockWith('--prune', PAGE));
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^The audit log is intact: 1 entry/);
  });

  it('is compared with a head that was kept', async () => {
    const { cli, run } = workspace();
    await cli.given('CI deploy');
    const [keep, compare] = blockWith('audit-head.txt', PAGE).trim().split('\n') as [string, string];
    assert.equal((await run(keep)).code, 0);
    await cli.given('Other');
    assert.equal((await run(compare)).code, 0);
    const other = await run(`rm "$SVC_API_DATABASE"* && svc-api apikey create --name A --roles GUEST && ${compare}`);
    assert.equal(other.code, 1);
  });

  it('gets a key that the service’s user reads', async function () {
    needsRoot(this);
    const { run, folder } = serviceMachine();
    const asService = 'runuser -u svc-api -- env SVC_API_DATABASE=/var/lib/svc-api/keys.sqlite svc-api apikey';
    const block = blockWith('audit.key', PAGE);
    const { code, stderr } = await run(
      `${block}${asService} create --name A --roles GUEST && ${asService} log --verify`,
    );
    assert.equal(code, 0, stderr);
    const key = statSync(join(folder, 'etc/svc-api/audit.key'));
    assert.deepEqual([key.uid, key.mode & 0o777], [NOBODY, 0o600]);
    const without = await run(`${asService} create --name B --roles GUEST --json`);
    assert.match(without.stdout, /"STORE_AUDIT_KEY"/);
  });
});

describe('Kubernetes, as docs/deploying.md has it', () => {
  it('gives the service’s user a folder of its own in a volume', async function () {
    needsRoot(this);
    const volume = tempFolder();
    // As Kubernetes mounts it with fsGroup, which opens up the store's modes.
    chownSync(volume, 0, 1000);
    chmodSync(volume, 0o2775);
    const pod = parse(blockWith('initContainers', 'docs/deploying.md', 'yaml')) as {
      securityContext: { runAsUser: number; runAsGroup: number };
      initContainers: { command: [string, string, string] }[];
    };
    const [shell, flag, script] = pod.initContainers[0]!.command;
    execFileSync(shell, [flag, script.replaceAll('/data', volume)]);
    const database = join(volume, 'svc-api', 'keys.sqlite');
    const user = { uid: pod.securityContext.runAsUser, gid: pod.securityContext.runAsGroup };
    const { code, stderr } = await runCli(['apikey', 'create', '--name', 'A', '--roles', 'GUEST'], {
      ...user,
      env: { SVC_API_DATABASE: database, HOME: volume },
    });
    assert.equal(code, 0, stderr);
  });
});

describe('a backup, as docs/backup.md has it', () => {
  it('is private, and can be restored', async function () {
    needsPrograms(this, 'sqlite3');
    const { cli, folder, run } = workspace();
    const { id } = await cli.given('Before');
    await withKeys({ database: cli.database }, (keys) => keys.feature(Sessions).begin(id, 'digest'));
    const made = await run(blockWith('.backup', 'docs/backup.md'));
    assert.equal(made.code, 0, made.stderr);
    assert.equal(statSync(join(folder, 'copy.sqlite')).mode & 0o777, 0o600);
    await cli.given('After');
    assert.equal((await run(blockWith('cp copy.sqlite', 'docs/backup.md'))).code, 0);
    assert.deepEqual(
      (await keysIn(cli.database)).map(({ name }) => name),
      ['Before'],
    );
    assert.deepEqual(await readDirectly(cli.database, 'select * from sessions'), []);
    assert.equal((await cli.run(['apikey', 'log', '--verify'])).code, 0);
  });
});
