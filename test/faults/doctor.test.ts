import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { mountSmallDisk, type SmallDisk } from '../support/full-disk.ts';
import { testCli } from '../support/cli.ts';
import { runCli } from '../support/process.ts';
import { skipUnlessCI } from '../support/skip.ts';
import { tempFolder } from '../support/temp.ts';

describe('on a disk of its own, doctor', () => {
  let disk: SmallDisk;
  let path: string;
  beforeEach(async function () {
    const mounted = mountSmallDisk(40);
    if (!mounted) skipUnlessCI(this, 'a small disk could not be mounted');
    disk = mounted;
    path = join(disk.folder, 'keys.sqlite');
    await testCli(path).given('A');
  });
  afterEach(() => disk?.unmount());
  const found = async () => {
    const { stdout, code } = await runCli(['doctor', '--json', '--database', path]);
    const { checks } = JSON.parse(stdout) as { checks: { check: string; status: string; message: string }[] };
    const failures = checks.filter(({ status }) => status === 'failure');
    return { code, failures: failures.map(({ check }) => check), text: failures.map(({ message }) => message).join() };
  };

  it('finds that it is full', async () => {
    assert.deepEqual((await found()).failures, []);
    disk.fill();
    const { code, failures } = await found();
    assert.equal(code, 1);
    assert.ok(failures.includes('SPACE'), failures.join());
    disk.empty();
  });

  it('works on a read-only disk, and says so', async function () {
    if (spawnSync('mount', ['-o', 'remount,ro', disk.folder]).status !== 0)
      skipUnlessCI(this, 'it could not be remounted');
    const { code, failures, text } = await found();
    assert.deepEqual([code, failures], [1, ['STORE']]);
    assert.match(text, /read-only file system/);
  });
});

describe('backup on a full disk', () => {
  it('leaves nothing, and the one before it', async function () {
    const disk = mountSmallDisk(1);
    if (!disk) skipUnlessCI(this, 'a small disk could not be mounted');
    try {
      const cli = testCli();
      await cli.given('A');
      const file = join(disk.folder, 'backup.sqlite');
      assert.equal((await cli.run(['backup', file])).code, 0);
      disk.fill();
      const { code, stdout } = await cli.run(['backup', file, '--overwrite', '--json']);
      assert.equal(code, 1);
      assert.equal((JSON.parse(stdout) as { code: string }).code, 'BACKUP_UNAVAILABLE');
      disk.empty();
      assert.equal((await cli.run(['restore', file, '--dry-run'])).code, 0);
      assert.equal((await cli.run(['backup', file, '--overwrite'])).code, 0);
    } finally {
      disk.unmount();
    }
  });
});

describe('restore on a full disk', () => {
  it('says that there is no room, and leaves the store as it is', async function () {
    const disk = mountSmallDisk(4);
    if (!disk) skipUnlessCI(this, 'a small disk could not be mounted');
    try {
      const cli = testCli(join(disk.folder, 'keys.sqlite'));
      await cli.given('A');
      const backup = join(tempFolder(), 'backup.sqlite');
      assert.equal((await cli.run(['backup', backup])).code, 0);
      const before = readFileSync(cli.database);
      disk.fill();
      const { code, stderr } = await cli.run(['restore', backup, '--yes']);
      assert.match(stderr, /^Error: The backup .* cannot be copied \(ENOSPC\)\.\nCode: BACKUP_UNAVAILABLE\n/);
      assert.equal(code, 1);
      assert.deepEqual(readFileSync(cli.database), before);
      disk.empty();
      assert.equal((await cli.run(['restore', backup, '--yes'])).code, 0);
    } finally {
      disk.unmount();
    }
  });
});
