import assert from 'node:assert/strict';
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Host, installHost, packPackage, run } from '../support/host.ts';
import { BIN, type Finished, runCli } from '../support/process.ts';
import { tempFolder } from '../support/temp.ts';

/** Command lines in order, on a new store: every kind of result and error. */
const COMMANDS: readonly (readonly string[])[] = [
  ['apikey', '--create', '--name', 'CI deploy', '--roles', 'viewer', '--json'],
  ['apikey', '--create', '--name', 'CI deploy', '--roles', 'viewer', '--json'],
  ['apikey', '--create', '--name', 'CI deploy', '--roles', 'viewer'],
  ['apikey', '--create', '--name', 'CI deploy', '--roles', 'viewer', '--overwrite'],
  ['apikey', '--create', '--name', 'a-b', '--roles', 'ADMN,', '--permissions', 'DOCKER:X', '--json'],
  ['apikey', '--create', '--name', 'x', '--json'],
  ['apikey', '--create', '--roles', 'ADMIN'],
  ['apikey', '--create', '--delete'],
  ['apikey', '--unknown', '--json'],
  ['apikey', '--delete'],
  ['apikey', '--delete', '--name', 'nobody', '--json'],
  ['apikey', '--delete', '--name', 'nobody'],
  ['apikey', '--delete', '--name', 'CI deploy', '--json'],
  ['apikey', '--delete', '--json'],
  ['serve', '--port', 'http'],
  ['serve', '--host', '203.0.113.1', '--port', '0'],
];

/** A result without what differs from run to run: secrets, ids, and log lines. */
function steady({ stdout, stderr, code }: Finished): object {
  const clean = (text: string) =>
    text
      .replaceAll(/svc_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}/g, 'SECRET')
      .replaceAll(/svc_[0-9A-Za-z]{12}_…/g, 'PREFIX')
      .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'ID')
      .replaceAll(/^\{"level".*\n/gm, '');
  return { stdout: clean(stdout), stderr: clean(stderr), code };
}

async function resultsOf(cli: (args: readonly string[]) => Promise<Finished>): Promise<object[]> {
  const results = [];
  for (const args of COMMANDS) results.push({ args, ...steady(await cli(args)) });
  return results;
}

for (const [core, help] of [
  ['^5', '^7'],
  ['^4', '^6'],
] as const) {
  describe(`a host on oclif core ${core}`, () => {
    let host: Host;
    before(async () => {
      const tarball = await packPackage();
      host = await installHost({ 'svc-api': `file:${tarball}`, '@oclif/core': core, '@oclif/plugin-help': help });
    });

    it('answers every command line as svc-api itself does', async () => {
      const home = tempFolder();
      const [inHost, alone] = await Promise.all([
        resultsOf((args) => host.cli(args)),
        resultsOf((args) => runCli(args, { env: { XDG_DATA_HOME: home } })),
      ]);
      assert.deepEqual(inHost, alone);
      assert.ok(existsSync(join(host.folder, 'home/svc-api/keys.sqlite')), 'the store is the same for every host');
    });

    it('shows the help of the commands under its own name', async () => {
      for (const command of ['apikey', 'serve']) {
        const { stdout, code } = await host.cli([command, '--help']);
        assert.equal(code, 0);
        assert.match(stdout, new RegExp(`\\$ acme ${command}`));
        assert.doesNotMatch(stdout, /svc-api (apikey|serve)/);
      }
    });

    it('keeps its own command as it was', async () => {
      assert.deepEqual(steady(await host.cli(['hello'])), { stdout: 'Hello from acme\n', stderr: '', code: 0 });
    });

    it('shows no stack when stdout is full', async () => {
      const { stderr, code } = await run(
        'sh',
        ['-c', `"$0" "$1" apikey --create --name Full --roles GUEST > /dev/full`, process.execPath, join(host.folder, 'bin/run.js')],
        {
          cwd: host.folder,
          env: { XDG_DATA_HOME: join(host.folder, 'home') },
        },
      );
      assert.equal(code, 1);
      assert.equal(
        stderr,
        'Error: The output could not be written to stdout (ENOSPC). The key was removed again, because nobody has its secret.\n',
      );
    });

    it('has resources of its own, which the command line knows without the resolvers', async () => {
      const resolvers = join(host.folder, 'resolvers.js');
      const text = readFileSync(resolvers, 'utf8');
      writeFileSync(resolvers, 'throw new Error("the resolvers were loaded");');
      try {
        const { stdout, stderr, code } = await host.cli(['apikey', '--create', '--name', 'Backup job', '--permissions', 'BACKUP:READ_ANY']);
        assert.equal(code, 0, stderr);
        assert.match(stdout, /^svc_/);
      } finally {
        writeFileSync(resolvers, text);
      }
      const alone = await runCli(['apikey', '--create', '--name', 'x', '--permissions', 'BACKUP:READ_ANY'], {
        env: { XDG_DATA_HOME: tempFolder() },
      });
      assert.equal(alone.code, 2);
      assert.match(alone.stderr, /"BACKUP" is not a resource/);
    });

    it('refuses to serve a schema with an open root field, by name', async () => {
      const hook = join(host.folder, 'hooks/schema.js');
      const text = readFileSync(hook, 'utf8');
      writeFileSync(hook, text.replace(' @requires(resource: BACKUP, action: READ_ANY)', ''));
      try {
        const { stdout, stderr, code } = await host.cli(['serve', '--port', '0']);
        assert.equal(code, 1);
        assert.equal(stdout, '');
        assert.match(stderr, /Query\.backups must carry @requires/);
      } finally {
        writeFileSync(hook, text);
      }
    });

    it('says which hook failed', async () => {
      const hook = join(host.folder, 'hooks/schema.js');
      const text = readFileSync(hook, 'utf8');
      appendFileSync(hook, '\nthrow new Error("no backups today");\n');
      try {
        const { stderr, code } = await host.cli(['serve', '--port', '0']);
        assert.notEqual(code, 0);
        assert.match(stderr, /svc-api:schema of acme failed: no backups today/);
        assert.doesNotMatch(stderr, /^ +at /m);
      } finally {
        writeFileSync(hook, text);
      }
    });
  });
}

describe('a host whose users install plugins', () => {
  it('gets the commands by `plugins install`, and loses them by `plugins uninstall`', async () => {
    const tarball = await packPackage();
    const host = await installHost({ '@oclif/plugin-plugins': '^7' }, (manifest) => {
      delete manifest.dependencies['svc-api'];
      delete manifest.oclif.hooks;
      manifest.oclif.plugins = ['@oclif/plugin-help', '@oclif/plugin-plugins'];
    });
    const installed = await host.cli(['plugins', 'install', `file:${tarball}`]);
    assert.equal(installed.code, 0, installed.stderr);
    const created = await host.cli(['apikey', '--create', '--name', 'From acme', '--roles', 'GUEST']);
    assert.equal(created.code, 0, created.stderr);
    assert.match(created.stdout, /^svc_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}\n$/);
    const read = await runCli(['apikey', '--delete', '--name', 'From acme'], { env: { XDG_DATA_HOME: join(host.folder, 'home') } });
    assert.equal(read.stdout, 'Successfully deleted 1 API key\n', `${BIN} uses the same store`);
    assert.equal((await host.cli(['plugins', 'uninstall', 'svc-api'])).code, 0);
    assert.notEqual((await host.cli(['apikey', '--delete'])).code, 0);
  });
});
